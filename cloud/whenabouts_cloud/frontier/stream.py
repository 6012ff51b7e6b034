"""The frontier of a stream: the time before which all its readings have landed.

With f the watermarks of the gateways that feed the stream

    F = max( min over its gateways of f,  max over its gateways of f  -  DELAY )

The slowest gateway decides, but a gateway that falls silent holds the stream back by at most DELAY and is then listed
in `silent`. A gateway that has sent readings but no watermark counts as if its watermark were minus infinity; a rule
sees only readings that can be in a result. F never falls. Cost of a step: linear in the gateways.
"""

from collections.abc import Iterable
from typing import Any

from whenabouts_cloud.frontier.gateways import Watermarks


class StreamFrontier:
    """F of one stream; gateways are named "site/gateway", times are microseconds since 1970 UTC.

    `value` is F, or None while no watermark of the stream is known.
    """

    def __init__(self, delay_us: int) -> None:
        self.delay_us = delay_us
        self.value: int | None = None
        self._feeding: set[str] = set()
        self._watermarks = Watermarks()

    def seen(self, gateways: Iterable[str]) -> None:
        """Note that readings of these gateways have landed: the stream waits for their watermarks too."""
        self._feeding.update(gateways)

    def note_watermark(self, gateway: str, frontier_us: int) -> None:
        """Note a watermark, effective from the next `take_effect` on. One below an earlier one changes nothing."""
        self._watermarks.note(gateway, frontier_us)

    def take_effect(self) -> None:
        """Make the noted watermarks effective."""
        self._watermarks.take_effect()
        known = self._watermarks.in_effect
        self._feeding.update(known)
        if not known:
            return
        latest = max(known.values()) - self.delay_us
        value = max(latest, min(known.values())) if len(known) == len(self._feeding) else latest
        self.value = value if self.value is None else max(value, self.value)

    @property
    def silent(self) -> list[str]:
        """Gateways that are no longer waited for: their watermark lies more than DELAY behind the latest one.

        A gateway without a watermark is starting, not silent.
        """
        value = self.value
        return [] if value is None else sorted(name for name, us in self._watermarks.in_effect.items() if us < value)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return {"value": self.value, "feeding": sorted(self._feeding), "watermarks": self._watermarks.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self.value, self._feeding = state["value"], set(state["feeding"])
        self._watermarks.restore(state["watermarks"])
