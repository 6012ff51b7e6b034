"""The patterns that an engine runs, by number, and the first event that each of them sees.

Numbers are given in turn and never reused. A pattern that is added while events are stored must not see the earlier ones. So
its classes have separate chains until all earlier events are past for every pattern. From then on a separate chain would
have the same events as that of an older pattern, and the two become one.
"""

from collections.abc import Mapping, Sequence

from whenabouts_cloud.cep.kernel.layout import NEVER
from whenabouts_cloud.pattern.plan import Plan


class Running:
    """The patterns of one engine.

    `since` is, by number, the index of the first event that a pattern sees; 0 once this makes no difference. `held` is, by
    such an index, the greatest t_max of the events before it that were stored when the pattern was added.
    """

    def __init__(
        self, plans: Sequence[Plan] | Mapping[int, Plan], since: Mapping[int, int] | None = None,
        held: Mapping[int, int] | None = None, following: int | None = None,
    ) -> None:  # fmt: skip
        self.plans = dict(plans) if isinstance(plans, Mapping) else dict(enumerate(plans))
        self.since = dict.fromkeys(self.plans, 0) if since is None else dict(since)
        self.held = dict(held or {})
        self.following = len(self.plans) if following is None else following

    @property
    def causal(self) -> bool:
        """True if any pattern needs vector clocks."""
        return any(plan.mode == "causal" for plan in self.plans.values())

    def add(self, plan: Plan, fed: int, latest: int) -> int:
        """Add a pattern that sees events from index `fed` on; return its number. `latest` is the greatest t_max stored."""
        number, self.following = self.following, self.following + 1
        self.plans[number] = plan
        self.since[number] = 0 if latest == NEVER else fed
        if latest != NEVER:
            self.held[fed] = latest
        return number

    def remove(self, number: int) -> None:
        """Remove a pattern.

        Raises:
            ValueError: there is no such pattern.
        """
        if number not in self.plans:
            raise ValueError(
                f"pattern: found {number}, expected one of those that run: {', '.join(map(str, self.plans)) or 'none'}"
            )
        del self.plans[number], self.since[number]

    def settle(self, past: int) -> set[int]:
        """Forget and return the indices in `since` whose earlier events all ended before `past`."""
        settled = {since for since, latest in self.held.items() if latest < past}
        for since in settled:
            del self.held[since]
        self.since = {number: 0 if since in settled else since for number, since in self.since.items()}
        return settled
