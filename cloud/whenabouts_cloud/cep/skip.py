"""After-match skip: which of the matches that are sure remain, decided when no earlier one can come any more.

Matches are taken by (t, index) of their positives in the order of their places; of the same events in different places,
those in the earlier ones first. To next: the first match of each first event remains. Past last: a match remains if it
begins after the end of the last that remained, per key. A match is decided once the frontier is past its first event's time
plus window and longest stamp, for all that begin no later are told by then.
"""

from dataclasses import dataclass, field

from whenabouts_cloud.cep.plan import Plan

Row = tuple[int, ...]
Order = tuple[tuple[int, int], ...]


@dataclass
class Skipper:
    """Holds back the matches of one plan until they are decided."""

    plan: Plan
    longest: int
    # order, t_max of the last, key, row, probability
    waiting: list[tuple[Order, int, int, Row, float]] = field(default_factory=list)
    past: dict[int, int] = field(default_factory=dict)  # by key: end of the last match that remained

    def add(self, order: Order, last_t_max: int, key: int, row: Row, probability: float = 1.0) -> None:
        """A match that is sure."""
        self.waiting.append((order, last_t_max, key, row, probability))

    def decided(self, frontier: int) -> list[tuple[int, Row, float]]:
        """(frontier that decided it, row, probability) of all that are decided at this frontier and remain."""
        wait = self.plan.window + self.longest
        due = sorted((one for one in self.waiting if one[0][0][0] + wait < frontier), key=_rank)
        if not due:
            return []
        self.waiting = [one for one in self.waiting if one[0][0][0] + wait >= frontier]
        kept, first = [], None
        for order, last_t_max, key, row, probability in due:
            if self.plan.skip == "to_next":
                remains = order[0] != first
            else:
                remains = order[0][0] > self.past.get(key, order[0][0] - 1)
            if remains:
                first = order[0]
                self.past[key] = last_t_max
                kept.append((order[0][0] + wait + 1, row, probability))
        if self.plan.skip == "past_last":
            self.past = {key: end for key, end in self.past.items() if end + wait >= frontier}
        else:
            self.past.clear()
        return kept


def _rank(one: tuple[Order, int, int, Row, float]) -> tuple[Order, list[bool]]:
    return one[0], [index < 0 for index in one[3]]
