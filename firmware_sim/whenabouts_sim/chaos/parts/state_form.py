"""Further values of a gateway's local state, beside the presence of its badge."""

from typing import NamedTuple


class Stays(NamedTuple):
    """Presence of the badge by another definition: from the reads-th read on, until leave_ms after the last one."""

    reads: int
    leave_ms: int
    name: str = "stays"

    def declared(self, badge_stream: str, key: str) -> str:
        """Its part of the configuration."""
        return (
            f'[[state]]\nname = "{self.name}"\nstream = "{badge_stream}"\nkey = "{key}"\nreads = {self.reads}\n'
            f"leave_ms = {self.leave_ms}\n"
        )


class Warm(NamedTuple):
    """A measure of a stream beyond one of two thresholds for hold_ms."""

    stream: str
    on_at: float
    off_at: float
    hold_ms: int
    name: str = "warm"

    def declared(self, _badge_stream: str, _key: str) -> str:
        """Its part of the configuration."""
        return (
            f'[[state]]\nname = "{self.name}"\nstream = "{self.stream}"\non_at = {self.on_at}\noff_at = {self.off_at}\n'
            f"hold_ms = {self.hold_ms}\n"
        )

    def side(self, measured: float) -> bool | None:
        """True for on, False for off, None for neither."""
        is_high = self.on_at > self.off_at
        if measured >= self.on_at if is_high else measured <= self.on_at:
            return True
        return False if (measured <= self.off_at if is_high else measured >= self.off_at) else None


StateForm = Stays | Warm
