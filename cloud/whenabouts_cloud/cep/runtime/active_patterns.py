"""Which patterns an engine runs, by number, and from which event on each of them sees.

Numbers are given in turn and never again. A pattern that is added while events are held must not see those that came before
it. So its classes have chains of their own until all those events are past for every pattern; from then on a chain of its
own would hold the same as that of an older pattern, and the two become one.
"""

from collections.abc import Mapping, Sequence

from whenabouts_cloud.cep.kernel.layout import NEVER
from whenabouts_cloud.pattern.plan import Plan


class Running:
    """The patterns of one engine. `since` is, by number, the index of the first event that a pattern sees, 0: it makes no
    difference any more; `held` is, by such an index, the greatest t_max of the events before it that were held then."""

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
        """Whether any pattern asks for vector clocks."""
        return any(plan.mode == "causal" for plan in self.plans.values())

    def add(self, plan: Plan, fed: int, latest: int) -> int:
        """The number of a pattern that sees events from index `fed` on; `latest` is the greatest t_max that is held."""
        number, self.following = self.following, self.following + 1
        self.plans[number] = plan
        self.since[number] = 0 if latest == NEVER else fed
        if latest != NEVER:
            self.held[fed] = latest
        return number

    def remove(self, number: int) -> None:
        """
        Raises:
            ValueError: there is no such pattern.
        """
        if number not in self.plans:
            raise ValueError(
                f"pattern: found {number}, expected one of those that run: {', '.join(map(str, self.plans)) or 'none'}"
            )
        del self.plans[number], self.since[number]

    def settle(self, past: int) -> set[int]:
        """The indices from which on patterns saw, all events before which ended before `past`: they are forgotten."""
        settled = {since for since, latest in self.held.items() if latest < past}
        for since in settled:
            del self.held[since]
        self.since = {number: 0 if since in settled else since for number, since in self.since.items()}
        return settled
