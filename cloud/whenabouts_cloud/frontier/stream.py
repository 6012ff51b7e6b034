"""Up to when a stream is complete: F_S, from the promises of the gateways that produce it.

A gateway promises "everything of mine with t_max < f has landed". The stream is complete before

    F_S = max( min over its gateways of f,  max over its gateways of f  -  DELAY )

so the slowest gateway decides, but one that falls silent holds the stream back by DELAY at most and is then named in
`silent`. A gateway that has sent readings and no promise yet counts as one whose promise is minus infinity. F_S never falls.

A promise does not take effect at once: it waits until `take_effect` is called (`shard` says when, and why).
"""

from collections.abc import Iterable
from typing import Any


class StreamFrontier:
    """F_S of one stream; gateways are named "site/gateway", times are microseconds since 1970 UTC."""

    def __init__(self, delay_us: int) -> None:
        self.delay_us = delay_us
        self.value: int | None = None
        self._promised: dict[str, int | None] = {}
        self._waiting: dict[str, int] = {}

    def seen(self, gateways: Iterable[str]) -> None:
        """Readings of these gateways have come: the stream waits for their promises as well."""
        for gateway in gateways:
            self._promised.setdefault(gateway, None)

    def promise(self, gateway: str, frontier_us: int) -> None:
        """Note a promise; it counts from the next `take_effect` on. An earlier time than promised before changes nothing."""
        self._waiting[gateway] = max(frontier_us, self._waiting.get(gateway, frontier_us))

    def take_effect(self) -> None:
        """Let the noted promises count."""
        for gateway, frontier_us in self._waiting.items():
            before = self._promised.get(gateway)
            self._promised[gateway] = frontier_us if before is None else max(before, frontier_us)
        self._waiting.clear()
        promises = [x for x in self._promised.values() if x is not None]
        if not promises:
            return
        latest = max(promises) - self.delay_us
        value = max(latest, min(promises)) if len(promises) == len(self._promised) else latest
        self.value = value if self.value is None else max(value, self.value)

    @property
    def silent(self) -> list[str]:
        """Gateways that are no longer waited for: their last promise lies more than DELAY behind the latest of all.

        One that has not promised anything yet is starting, not silent.
        """
        value = self.value
        return (
            [] if value is None else sorted(name for name, f in self._promised.items() if f is not None and f < value)
        )

    def snapshot(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return {"value": self.value, "promised": self._promised, "waiting": self._waiting}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self.value, self._promised, self._waiting = state["value"], dict(state["promised"]), dict(state["waiting"])
