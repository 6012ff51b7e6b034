"""Membership of the group: views, learned from the birth and status messages that the broker keeps for each gateway.

The possible members are configured. A member is in the view from the birth that names the group until its agent stops in
order, its birth is removed, or a later birth names another group. A lost connection changes nothing: the process lives
on, and its states come later. A new boot is a new process.

Members are ordered by name, so every member computes the same view. The record of a gateway only moves forward, from boot
to boot and within a boot from present to departed, and departed members count in the view's number. So a view number
never returns, nor does a state number of an earlier view.
"""

from whenabouts_protocol.group_state import view_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whenabouts_protocol.group_state import Members

MAX_PAST_BOOTS = 16  # of one gateway, newest kept: a birth with one of them is an old message that was sent again


class View:
    """The members in the order of the clock, the index of this gateway among them, and the number of the view."""

    __slots__ = ("members", "number", "own")

    def __init__(self, members: "Members", number: int, own: int) -> None:
        self.members, self.number, self.own = members, number, own


class Membership:
    """The presence and boots of the gateways that may be members. boot: of this gateway, which is always a member."""

    def __init__(self, group: str, gateway: str, boot: int, peers: "list[str]") -> None:
        self._group, self._own = group, (gateway, boot)
        self._peers = sorted(peers)
        self._boot: dict[str, int] = {}
        self._present: dict[str, bool] = {}
        self._stopped: dict[str, int] = {}
        self._past: dict[str, list[int]] = {}
        self.old_boots = 0  # births of a boot that had ended, which are ignored

    def born(self, gateway: str, boot: int, group: "str | None") -> bool:
        """Take in a birth; returns True if the view changes."""
        if gateway not in self._peers:
            return False
        before = self._boot.get(gateway)
        past = self._past.setdefault(gateway, [])
        if boot in past:
            self.old_boots += 1
            return False
        if before == boot:
            return group != self._group and self._depart(gateway)
        if before is not None:
            past.append(before)
            self._past[gateway] = past[-MAX_PAST_BOOTS:]
        self._boot[gateway] = boot
        self._present[gateway] = group == self._group and self._stopped.get(gateway) != boot
        return True

    def removed(self, gateway: str) -> bool:
        """Note that the birth was removed from the broker; returns True if the view changes."""
        return self._depart(gateway)

    def stopped(self, gateway: str, boot: int) -> bool:
        """Note that the agent of this boot ended in order; returns True if the view changes."""
        if gateway not in self._peers:
            return False
        self._stopped[gateway] = boot
        return self._boot.get(gateway) == boot and self._depart(gateway)

    def view(self) -> View:
        """The view that follows from the messages so far."""
        members: Members = [self._own]
        departed: Members = []
        for gateway in self._peers:
            if gateway in self._boot:
                (members if self._present[gateway] else departed).append((gateway, self._boot[gateway]))
        members.sort()
        return View(members, view_number(members, departed), members.index(self._own))

    def _depart(self, gateway: str) -> bool:
        if not self._present.get(gateway):
            return False
        self._present[gateway] = False
        return True
