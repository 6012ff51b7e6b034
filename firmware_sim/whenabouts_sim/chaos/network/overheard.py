"""What passed the broker: acknowledgements; heartbeats, each with what had been acknowledged before it; states that came
to peers; rules that came to gateways; and when clients were connected.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from whenabouts_protocol import Heartbeat, WireError, decode_ack, decode_heartbeat
from whenabouts_sim.chaos.network import lying_gateway as liar
from whenabouts_sim.chaos.network.broker_model import Message
from whenabouts_sim.chaos.network.next_version import understood

EVER_US = 1 << 62


class Said(NamedTuple):
    """A heartbeat. confirmed: the highest number that had been acknowledged to its gateway when it came, by boot. at_us:
    when that was.
    """

    beat: Heartbeat
    confirmed: Mapping[int, int]
    at_us: int


class Arrived(NamedTuple):
    """A message that reached a client."""

    at_us: int
    client: str
    message: Message


class Overheard:
    """acked: the highest number that was acknowledged, by site, gateway and boot. A liar is not listened to. states: of
    gateways, that reached others. rules: that reached somebody. links: spans in which messages passed between the broker and
    a client.

    now_us: true UTC.
    """

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self.states: list[Arrived] = []
        self.rules: list[Arrived] = []
        self.links: dict[str, list[list[int]]] = {}
        self.acked: dict[tuple[str, str, int], int] = {}
        self.heartbeats: list[Said] = []
        self._confirmed: dict[tuple[str, str], Mapping[int, int]] = {}

    def published(self, _client: str, message: Message) -> None:
        """The broker has taken a message."""
        message = understood(message)
        try:
            if message.topic.endswith("/heartbeat"):
                beat = decode_heartbeat(message.payload)
                if beat.gateway != liar.NAME:
                    confirmed = self._confirmed.get((beat.site, beat.gateway), {})
                    self.heartbeats.append(Said(beat, confirmed, self._now_us()))
            elif message.topic.endswith("/ack"):
                ack = decode_ack(message.payload)
                if ack.gateway != liar.NAME:
                    self._confirm(ack.site, ack.gateway, ack.landed)
        except WireError:
            return

    def arrived(self, client: str, message: Message) -> None:
        """A message has reached a client."""
        message = understood(message)
        if message.topic.endswith("/state"):
            self.states.append(Arrived(self._now_us(), client, message))
        elif message.topic.endswith("/rules"):
            self.rules.append(Arrived(self._now_us(), client, message))

    def linked(self, client: str, is_up: bool) -> None:
        """Messages pass from now on, or do not."""
        spans = self.links.setdefault(client, [])
        if is_up:
            spans.append([self._now_us(), EVER_US])
        elif spans:
            spans[-1][1] = min(spans[-1][1], self._now_us())

    def _confirm(self, site: str, gateway: str, landed: Mapping[int, int]) -> None:
        confirmed = dict(self._confirmed.get((site, gateway), {}))  # a new one: heartbeats keep those before
        for boot, seq in landed.items():
            confirmed[boot] = max(seq, confirmed.get(boot, -1))
            self.acked[site, gateway, boot] = confirmed[boot]
        self._confirmed[site, gateway] = confirmed
