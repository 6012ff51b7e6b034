"""After-match skip: the choice of the final matches that remain, made when no earlier match can come any more.

Matches are ordered by (t, t_max, index) of their positives in the order of their places, so the order of arrival decides
only between equal stamps; of matches with the same events, the one with the earlier places comes first. To next: the first
match of each first event remains. Past last: a match remains if it begins after the end of the last match of its key that
remained. A match is decided once all matches that begin no later are final (`_wait_of`).

Either way at most one match of each first event remains, the least. So matches are sorted only by first event, and the least
of each group is found in a scan. Cost: a sort of the matches of each call.
"""

from typing import Any

import numpy as np

from whenabouts_cloud.cep.kernel.layout import NEVER
from whenabouts_cloud.jit import Array, compiled_noref
from whenabouts_cloud.pattern.plan import Plan

# Columns of a waiting match: key, t_max of its last positive, (t, t_max, index) of each positive in order, its row.
KEY, END, T, T_MAX, INDEX = 0, 1, 2, 3, 4


class Skipper:
    """Keeps the matches of one plan until they are decided.

    `waiting` has a row for each waiting match, in the columns above, and `probability` its probability. `past` has a row
    for each key, ascending in KEY, with the END of its last match that remained.
    """

    def __init__(self, plan: Plan, longest: int) -> None:
        self.wait = _wait_of(plan, longest)
        self.past_last = plan.skip == "past_last"
        self.rows_from = T + 3 * max(len(one.classes) for one in plan.alternatives)
        self.waiting: Array = np.empty((0, self.rows_from + plan.width), np.int64)
        self.probability: Array = np.empty(0, np.float64)
        self.past: Array = np.empty((0, 2), np.int64)

    def add(self, key: Array, t: Array, t_max: Array, index: Array, rows: Array, probability: Array) -> None:
        """Adds final matches: (m,) keys, (m, positives) stamps and indices in the order of places, (m, width) rows."""
        more = np.full((len(key), self.waiting.shape[1]), NEVER)
        more[:, KEY], more[:, END] = key, t_max[:, -1]
        behind = T + 3 * t.shape[1]
        more[:, T:behind:3], more[:, T_MAX:behind:3], more[:, INDEX:behind:3] = t, t_max, index
        more[:, self.rows_from :] = rows
        self.waiting = np.concatenate([self.waiting, more])
        self.probability = np.concatenate([self.probability, probability])

    def decided(self, frontier: int) -> tuple[Array, Array, Array]:
        """(deciding frontiers, rows, probabilities) of all matches that are decided at this frontier and remain."""
        is_due = self.waiting[:, T] + self.wait < frontier
        due, probability = self.waiting[is_due], self.probability[is_due]
        if not len(due):
            return np.empty(0, np.int64), due[:, self.rows_from :], probability
        self.waiting, self.probability = self.waiting[~is_due], self.probability[~is_due]
        order = np.lexsort((due[:, INDEX], due[:, T_MAX], due[:, T], due[:, KEY]))
        remains = np.zeros(len(due), np.bool_)
        _choose(due, order, self.rows_from, self.past_last, self.past, remains)
        kept = due[remains]
        if self.past_last:
            ends = np.concatenate([self.past, kept[:, [KEY, END]]])
            ends = ends[np.lexsort((ends[:, END], ends[:, KEY]))]
            latest = np.append(ends[1:, KEY] != ends[:-1, KEY], True)
            self.past = ends[latest & (ends[:, END] + self.wait >= frontier)]
        return kept[:, T] + self.wait + 1, kept[:, self.rows_from :], probability[remains]


def _wait_of(plan: Plan, longest: int) -> int:
    """Ticks behind the begin of a match's first event after which every match that begins no later is final.

    CERTAIN: its other events end within the window, and what may lie between them comes at most one stamp later. A gap
    behind them reaches the window further than the end of the first event, which is one more stamp. In another order the
    window may be too short for some times of the events: the last can end two stamps later, and a gap before it one more.
    """
    negations = [negation for alternative in plan.alternatives for negation in alternative.negations]
    if plan.mode != "certain":
        return plan.window + longest * (3 if negations else 2)
    return plan.window + longest * (2 if any(not negation.right for negation in negations) else 1)


@compiled_noref
def _choose(rows: Array, order: Array, rows_from: int, past_last: bool, past: Array, remains: Array) -> None:
    """Marks the rows that remain; in `order`, rows of the same key and first event are adjacent, in time order."""
    key, end, one = 0, NEVER, 0
    while one < len(order):
        first = best = order[one]
        while one < len(order) and _same_first(rows, first, order[one]):
            if _before(rows, order[one], best, rows_from):
                best = order[one]
            one += 1
        if past_last:
            if rows[first, KEY] != key or end == NEVER:
                key = rows[first, KEY]
                end = _end_of(past, key)
            if rows[best, T] <= end:
                continue
            end = rows[best, END]
        remains[best] = True


@compiled_noref
def _same_first(rows: Array, a: int, b: int) -> bool:
    return bool(rows[a, KEY] == rows[b, KEY] and rows[a, INDEX] == rows[b, INDEX])


@compiled_noref
def _before(rows: Array, a: int, b: int, rows_from: int) -> bool:
    """True if match a comes before match b, by events, then by places."""
    for column in range(T, rows_from):
        if rows[a, column] != rows[b, column]:
            return bool(rows[a, column] < rows[b, column])
    for column in range(rows_from, rows.shape[1]):
        if (rows[a, column] < 0) != (rows[b, column] < 0):
            return bool(rows[b, column] < 0)
    return False


@compiled_noref
def _end_of(past: Array, key: int) -> Any:
    """End of the last match of a key that remained, NEVER if there is none."""
    begin, end = 0, len(past)
    while begin < end:
        middle = (begin + end) >> 1
        if past[middle, KEY] < key:
            begin = middle + 1
        else:
            end = middle
    return past[begin, END] if begin < len(past) and past[begin, KEY] == key else NEVER
