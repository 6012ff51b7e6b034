"""A gateway with a valid certificate that lies: about itself, its streams, its numbers and times, and about others.

It publishes below its own name only, as the broker's access rules allow no more. It may publish one stream, which no rule
reads; whatever it says, others' readings, frontiers and results must be as if it were not there.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from whenabouts_protocol import Birth, Heartbeat, Reading, encode_batch, encode_birth, encode_heartbeat, topic
from whenabouts_sim.chaos.network.broker_model import Broker, Connection, Message

NAME = "liar"
STREAM = "liar/notes"
FAR = 1 << 40
EVERY_S = 0.05
AGAIN_S = 0.5


class Victim(NamedTuple):
    """An honest gateway, whose names are known to everybody."""

    site: str
    gateway: str
    streams: Sequence[str]


class Liar:
    """One liar of a site. now_us: UTC, which it knows."""

    def __init__(
        self, site: str, victims: Sequence[Victim], broker: Broker, chance: Random, now_us: Callable[[], int]
    ) -> None:
        self.site, self._victims, self._broker, self._chance, self._now_us = site, victims, broker, chance, now_us
        self._connection: Connection | None = None
        self._seq = 0

    async def lie(self, until_us: int) -> None:
        """Publish lies until a time."""
        while self._now_us() < until_us:
            if self._connection is None or self._connection.broken:
                try:
                    self._connection = self._broker.connect(f"{self.site}/{NAME}", self, None, keep=False)
                except ConnectionRefusedError:
                    await asyncio.sleep(AGAIN_S)
                    continue
            leaf, payload = self._chance.choice(
                (self._foreign, self._stolen_stream, self._own, self._watermark, self._birth, self._noise)
            )()
            self._connection.publish(Message(topic(self.site, NAME, leaf), payload, 1, leaf == "birth"), 1)
            await asyncio.sleep(EVERY_S)

    def came(self, message: Message, mid: int) -> None:
        """Nothing is asked for."""

    def taken(self, mid: int) -> None:
        """Nothing is waited for."""

    def refused(self, mid: int) -> None:
        """Nothing is sent again."""

    def lost(self) -> None:
        """It connects again."""

    def _foreign(self) -> tuple[str, bytes]:
        """A reading of somebody else, in a stream of theirs or in its own."""
        one = self._chance.choice(self._victims)
        stream = self._chance.choice((STREAM, self._chance.choice(one.streams)))
        return "obs", encode_batch([self._reading(one.site, one.gateway, stream)])

    def _stolen_stream(self) -> tuple[str, bytes]:
        """Its own reading, in a stream that others feed; among some that it may publish."""
        one = self._chance.choice(self._victims)
        streams = (STREAM, self._chance.choice(one.streams), STREAM)
        first, boot = self._chance.choice((0, self._seq, FAR)), self._boot()
        rows = [self._reading(self.site, NAME, stream, first + n, boot) for n, stream in enumerate(streams)]
        return "obs", encode_batch(rows)

    def _own(self) -> tuple[str, bytes]:
        """Readings of its own stream: numbers that go on, come again with another content, or jump."""
        self._seq += 1
        seq = self._chance.choice(
            (self._seq, self._seq, self._chance.randrange(self._seq), FAR + self._chance.randrange(9))
        )
        return "obs", encode_batch([self._reading(self.site, NAME, STREAM, seq)])

    def _watermark(self) -> tuple[str, bytes]:
        """It knows all of the future, and has published numbers that never come."""
        frontier_us = self._chance.choice((None, 0, self._now_us(), self._now_us() + FAR, 1 << 61))
        first = self._chance.choice((0, self._seq, FAR))
        published = {self._boot(): (first, first + self._chance.choice((0, 5, FAR)))}
        beat = Heartbeat(
            self.site, NAME, self._boot(), frontier_us, published, "bounded", self._chance.choice((1, FAR))
        )
        return "heartbeat", encode_heartbeat(beat)

    def _birth(self) -> tuple[str, bytes]:
        """It has all the streams of others, and is in their group."""
        streams = [(name, "tag", None, 0, 1) for one in self._victims for name in one.streams]
        return "birth", encode_birth(Birth(self.site, NAME, self._boot(), streams, "staff", ["gw-1", NAME]))

    def _noise(self) -> tuple[str, bytes]:
        """Bytes: none, some, or a true message with one changed."""
        data = bytearray(encode_batch([self._reading(self.site, NAME, STREAM, self._seq)]))
        data[self._chance.randrange(len(data))] ^= 1 << self._chance.randrange(8)
        leaf = self._chance.choice(("obs", "heartbeat", "birth", "status"))
        return leaf, self._chance.choice((b"", self._chance.randbytes(self._chance.randrange(1, 200)), bytes(data)))

    def _boot(self) -> int:
        return self._chance.choice((0, 0, 1, FAR))

    def _reading(self, site: str, gateway: str, stream: str, seq: int = 0, boot: int | None = None) -> Reading:
        begin_us = self._now_us() + self._chance.choice((0, 0, -FAR, FAR))
        return Reading(
            site=site, gateway=gateway, boot=self._boot() if boot is None else boot, seq=seq, stream=stream, kind="tag",
            key=f"{self._chance.getrandbits(40):010X}", t_min=begin_us, t_max=begin_us + self._chance.choice((0, 1000, FAR)),
        )  # fmt: skip
