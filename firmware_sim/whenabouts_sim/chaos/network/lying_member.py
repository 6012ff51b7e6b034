"""A member of a group with a valid certificate that lies in its states: about itself, about others, and in their names.

It publishes below its own name only, as the broker's access rules allow no more. It knows births and states of the others,
so that its lies fit to the view that they have.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from whenabouts_edge.group.membership import Membership, View
from whenabouts_protocol import Birth, Reading, WireError, decode_birth, encode_batch, encode_birth, parse_topic, topic
from whenabouts_protocol.group_state import KIND, attrs_of
from whenabouts_sim.chaos.network.broker_model import Broker, Connection, Message

NAME = "gw-9"
FAR = 1 << 39
EVERY_S = 0.1
AGAIN_S = 0.5
LEAVES = ("birth", "state")


class LyingMember:
    """One of a site. group: its name; peers: site by name of the honest members. now_us: UTC, which it knows."""

    def __init__(
        self, site: str, group: str, peers: Mapping[str, str], broker: Broker, chance: Random, now_us: Callable[[], int]
    ) -> None:
        self.site, self._group, self._peers = site, group, dict(peers)
        self._broker, self._chance, self._now_us = broker, chance, now_us
        self._connection: Connection | None = None
        self._boot, self._number = 1, 0
        self._membership = Membership(group, NAME, self._boot, list(peers))

    async def lie(self, until_us: int) -> None:
        """Publish lies until a time."""
        while self._now_us() < until_us:
            try:
                if self._connection is None or self._connection.broken:
                    self._connect()
                self._say("state", self._state())
            except ConnectionRefusedError:
                await asyncio.sleep(AGAIN_S)
            await asyncio.sleep(EVERY_S)

    def came(self, message: Message, mid: int) -> None:
        """Learn who is in the group."""
        place = parse_topic(message.topic)
        if mid and self._connection is not None:
            self._connection.acknowledge(mid)
        with contextlib.suppress(WireError):
            if place is not None and place[2] == "birth" and message.payload:
                birth = decode_birth(message.payload)
                self._membership.born(birth.gateway, birth.boot, birth.group)

    def taken(self, mid: int) -> None:
        """Nothing is waited for."""

    def refused(self, mid: int) -> None:
        """Nothing is sent again."""

    def lost(self) -> None:
        """It connects again."""

    def _connect(self) -> None:
        connection = self._connection = self._broker.connect(f"{self.site}/{NAME}", self, None, keep=False)
        connection.subscribe({topic(site, name, leaf): 1 for name, site in self._peers.items() for leaf in LEAVES})
        members = sorted([NAME, *self._peers])
        self._say("birth", encode_birth(Birth(self.site, NAME, self._boot, [], self._group, members)))

    def _say(self, leaf: str, payload: bytes) -> None:
        if self._connection is not None:
            self._connection.publish(Message(topic(self.site, NAME, leaf), payload, 1, leaf == "birth"), 1)

    def _state(self) -> bytes:
        """A state in the present view, wrong in one way or another."""
        view, chance = self._membership.view(), self._chance
        clock = [chance.choice((0, 1, 5, FAR)) for _ in view.members]
        self._number = clock[view.own] = chance.choice((self._number, self._number + 1, self._number + 1, FAR, 1 << 41))
        process = chance.choice((view.own, view.own, view.own, chance.randrange(len(clock))))
        name = chance.choice((NAME, NAME, NAME, NAME, chance.choice(sorted(self._peers))))
        clock = chance.choice((clock, clock, clock, clock, [*clock, 0], clock[: process + 1]))
        data = bytearray(encode_batch([self._reading(view, name, process, clock)]))
        if chance.random() < 0.1:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        return bytes(data)

    def _reading(self, view: View, name: str, process: int, clock: list[int]) -> Reading:
        chance = self._chance
        number = chance.choice((view.number, view.number, view.number, view.number ^ 1))
        is_heartbeat = chance.random() < 0.3
        values: dict[str, Any] = {} if is_heartbeat else {"present": chance.random() < 0.5}
        boot = chance.choice((self._boot, self._boot, self._boot, self._boot + 1))
        return Reading(
            site=self.site, gateway=name, boot=boot, seq=self._number % FAR, stream=f"{name}/state", kind=KIND,
            t_min=self._now_us(), t_max=self._now_us() + 1,
            attrs=attrs_of(self._group, number, process, values, is_heartbeat), vclock=tuple(clock),
        )  # fmt: skip
