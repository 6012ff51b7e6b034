"""Who is in the group: views, learned from the births and the ends that the broker keeps for each gateway.

Who may be a member is configured; a member is in the view from the birth that names the group until its agent stops in
order, its birth is removed, or a later birth names another group. A lost connection changes nothing: the process lives on,
and its states come later. A new boot is a new process.

The order is that of names, so every member finds the same view. What is known of one gateway only moves on, from boot to
boot and within a boot from present to departed, and departed members count in the view's number: so a number never comes
back, and with it no state number of an earlier view.
"""

from whenabouts_protocol.group_state import view_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whenabouts_protocol.group_state import Members

MAX_PAST_BOOTS = 16  # of one gateway, newest kept: a birth out of them is an old message that was sent again


class View:
    """The members in the order of the clock, the index of this gateway among them, and the number of the view."""

    __slots__ = ("members", "number", "own")

    def __init__(self, members: "Members", number: int, own: int) -> None:
        self.members, self.number, self.own = members, number, own


class Membership:
    """What is known of the gateways that may be members. boot: that of this gateway, which is always one."""

    def __init__(self, group: str, gateway: str, boot: int, peers: "list[str]") -> None:
        self._group, self._own = group, (gateway, boot)
        self._peers = sorted(peers)
        self._boot: dict[str, int] = {}
        self._present: dict[str, bool] = {}
        self._stopped: dict[str, int] = {}
        self._past: dict[str, list[int]] = {}
        self.old_boots = 0  # births of a boot that had ended: not believed

    def born(self, gateway: str, boot: int, group: "str | None") -> bool:
        """A birth came; whether the view is another one now."""
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
        """The birth was taken off the broker; whether the view is another one now."""
        return self._depart(gateway)

    def stopped(self, gateway: str, boot: int) -> bool:
        """The agent of this boot ended in order; whether the view is another one now."""
        if gateway not in self._peers:
            return False
        self._stopped[gateway] = boot
        return self._boot.get(gateway) == boot and self._depart(gateway)

    def view(self) -> View:
        """The view that follows from what is known."""
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
