"""Streaming join: pairs of two streams that satisfy a timing condition, found tuple by tuple in plain integers.

Each arrival is matched at once with the stored intervals of the other stream, so each pair is emitted exactly once,
with the later of its two arrivals, for every arrival order. Runs unchanged on boards, on gateways and in the cloud.

Z = Y - X for X uniform in an interval of side 0 (a) and Y of side 1 (b); a pair is a result when P(lo <= Z <= hi) >=
p/q. With x = the doubled middle of an interval (of a: plus lo + hi) the probability depends on u = |x_b - x_a|, the two
lengths and D = hi - lo only, and falls with u. So each side is kept ordered by x, and the matches of an arrival lie
symmetrically around it: a middle part that matches certainly and is taken as a slice without testing its elements, and
two margins, up to the distance beyond which nothing matches, whose elements are tested one by one in exact integers.

The limits come from the quantile of the sum of two uniforms. C(s) = P(U(0, w1) + U(0, w2) <= s) reaches p/q first at
s*; let T = w1 + w2 and 2Q = 2 s* - T. One tail alone allows u <= D - 2Q. Q grows with each length for p/q >= 1/2 and
falls for p/q below 1/2, so over the possible lengths its extremes are at their ends:
  never   u > D - 2 min Q      for every D >= 0, since both tails are at least the whole
  sure    u <= D - 2 max Q     where D >= T: the other tail is 1
          u <= D - 2 max Q'    where D < T, with Q' for (1 + p/q)/2: two tails that large leave p/q for the middle
They are kept for BUCKETS classes of the arrival's length, rounded outwards, so no rounding can change a result. Source:
Sections 4 to 6 of the mathematics of interval correlation; "Online Timing Correlation of Streaming Data with Uncertain
Timestamps" (2009), whose order by maximum tests three times as many elements at 0.8 and all of them at 0.5.

Cost of an arrival on a 3 GHz core, CPython 3.11: 1.2 us at 23 matches a tuple, 4.5 us at 380, 20 us at 2950.
"""

from whenabouts_protocol.probability import _cdf

try:
    from bisect import bisect_left, bisect_right
except ImportError:  # boards

    def bisect_left(a: "list[int]", x: int, lo: int = 0) -> int:  # type: ignore[no-redef]
        """First index in the ascending list, from lo on, whose value is not below x."""
        hi = len(a)
        while lo < hi:
            mid = (lo + hi) >> 1
            if a[mid] < x:
                lo = mid + 1
            else:
                hi = mid
        return lo

    def bisect_right(a: "list[int]", x: int, lo: int = 0) -> int:  # type: ignore[no-redef]
        """First index in the ascending list, from lo on, whose value is above x."""
        hi = len(a)
        while lo < hi:
            mid = (lo + hi) >> 1
            if a[mid] <= x:
                lo = mid + 1
            else:
                hi = mid
        return lo


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Rows = tuple[list[int], list[int], list[Any]]

BUCKETS = 64  # classes of length: more would narrow the margins by less than a hundredth
CHUNK = 64  # expired elements are removed when they are this many, or a quarter of a buffer
MAX_KEPT = 1_000_000  # intervals kept by default, both sides together


class StreamingJoin:
    """One running correlation.

    lo, hi and all times are integers of one unit; p/q is the confidence threshold in (0, 1]. lengths_a and lengths_b are
    the shortest and longest interval expected on each side. Other intervals are also matched correctly, except that a
    longer one misses partners that were forgotten before it arrived. With by_key only intervals of the same key match.
    limit bounds the number of intervals kept.

    Raises:
        ValueError: lo > hi, p/q outside (0, 1], shortest > longest or negative, limit below 1.
    """

    def __init__(
        self,
        lo: int,
        hi: int,
        p: int,
        q: int,
        lengths_a: "tuple[int, int]",
        lengths_b: "tuple[int, int]",
        by_key: bool = False,
        limit: int = MAX_KEPT,
    ) -> None:
        (shortest_a, longest_a), (shortest_b, longest_b) = lengths_a, lengths_b
        ordered = lo <= hi and 0 <= shortest_a <= longest_a and 0 <= shortest_b <= longest_b
        if not ordered or not 0 < p <= q or limit < 1:
            raise ValueError(
                f"streaming join: found limits {lo}..{hi}, confidence {p}/{q}, lengths {shortest_a}..{longest_a} and "
                f"{shortest_b}..{longest_b}, limit {limit}, expected lo <= hi, a confidence in (0, 1], "
                "0 <= shortest <= longest, a limit of at least 1"
            )
        self._width, self._centre, self._p, self._q = hi - lo, lo + hi, p, q
        self.longest = self._width * q // p  # P <= D / length, so no longer interval is ever in a pair
        self._longest_of = [min(longest_a, self.longest), min(longest_b, self.longest)]
        self._shortest_of = [min(shortest_a, self.longest), min(shortest_b, self.longest)]
        self._by_key = by_key
        self._limit = limit
        self._groups: dict[Any, tuple[Rows, Rows]] = {}
        self._only: tuple[Rows, Rows] | None = None if by_key else self._group(None)
        self._frontier: list[int | None] = [None, None]
        self._swept: list[int | None] = [
            None,
            None,
        ]  # by key: the horizon of each side at the last visit to all keys
        self.kept = 0  # intervals in the buffers
        self.pairs = 0
        self.evaluations = 0  # elements of the margins, each tested
        self.too_long = 0  # longer than any interval of a pair: not kept
        self.keyless = 0  # without the required key: not kept
        self.beyond_length = 0  # outside the expected lengths
        self.late = 0  # older than the side's frontier
        self.overflow = 0  # forgotten early because of the limit
        self._tabulate()

    def push(self, side: int, index: "Any", t_min: int, t_max: int, key: "Any" = None) -> "list[Any]":
        """Add an interval to side 0 or 1; return the indices of its partners on the other side, in time order."""
        w = t_max - t_min
        if w > self._longest_of[side] or w < self._shortest_of[side]:
            if w > self.longest:
                self.too_long += 1
                return []
            self._widen(side, w)
        group = self._only
        if group is None:
            if key is None:
                self.keyless += 1
                return []
            group = self._groups.get(key) or self._group(key)
        frontier = self._frontier[side]
        if frontier is not None and t_max < frontier:
            self.late += 1
        x = t_min + t_max
        if side == 0:
            x += self._centre
        near, sure = self._limits[side][w >> self._shift[side]]
        partners = self._partners(group[1 - side], x, w, near, sure)
        self.pairs += len(partners)
        own_x, own_w, own_index = group[side]
        if not own_x or x >= own_x[-1]:  # in time order, as usual: saves a call
            own_x.append(x)
            own_w.append(w)
            own_index.append(index)
        else:
            _insert(group[side], x, w, index)
        self.kept += 1
        if self.kept > self._limit:
            self._overflow()
        return partners

    def advance(self, frontier_a: "int | None", frontier_b: "int | None") -> None:
        """Set the frontiers, below which no t_max of that side will arrive (None: unknown), and drop unmatchable
        intervals.
        """
        self._frontier = [frontier_a, frontier_b]
        for side in (0, 1):
            frontier = self._frontier[side]
            if frontier is None:
                continue
            oldest = 2 * frontier - self._longest_of[side] + (self._centre if side == 0 else 0)
            horizon, swept = oldest - self.reach, self._swept[1 - side]
            if self._by_key and swept is not None and horizon - swept < self.reach >> 3:
                continue  # visiting every key is expensive: skip below an eighth of the reach
            self._swept[1 - side] = horizon
            self._forget(1 - side, horizon, CHUNK)

    def is_met(self, u: int, w1: int, w2: int) -> bool:
        """True if intervals of these lengths whose x differ by u are a pair; decided exactly."""
        width, total, p, q = self._width, w1 + w2, self._p, self._q
        if u < 0:
            u = -u
        s = (width + total - u) >> 1  # always whole: u and D + T have the same parity
        if width < total:
            f_num, f_den = _cdf(s, w1, w2)
            g_num, g_den = _cdf(s + u, w1, w2)
            return (f_num * g_den + g_num * f_den - f_den * g_den) * q >= p * f_den * g_den
        if s >= total:
            return True
        if s <= 0:
            return False
        lo, hi = (w1, w2) if w1 <= w2 else (w2, w1)
        if s < lo:
            return s * s * q >= p * 2 * lo * hi
        if s <= hi:
            return (2 * s - lo) * q >= 2 * p * hi
        return (total - s) * (total - s) * q <= (q - p) * 2 * lo * hi

    def _partners(self, rows: "Rows", x: int, w: int, near: int, sure: int) -> "list[Any]":
        """Indices of the rows that are pairs of (x, w): all up to `sure` away, those up to `near` if they pass the test."""
        xs, ws, indices = rows
        if not xs or xs[-1] < x - near:
            return []
        first = bisect_left(xs, x - near)
        if sure < 0:
            return self._margin(xs, ws, indices, first, bisect_right(xs, x + near, first), x, w)
        begin = bisect_left(xs, x - sure, first)
        # If readings arrive in time order, both ends are those of the list and need no search.
        end = len(xs) if xs[-1] <= x + sure else bisect_right(xs, x + sure, begin)
        last = len(xs) if end == len(xs) else bisect_right(xs, x + near, end)
        partners = indices[begin:end]
        if first < begin:
            partners = self._margin(xs, ws, indices, first, begin, x, w) + partners
        if end < last:
            partners += self._margin(xs, ws, indices, end, last, x, w)
        return partners

    def _margin(
        self, xs: "list[int]", ws: "list[int]", indices: "list[Any]", first: int, last: int, x: int, w: int
    ) -> "list[Any]":
        self.evaluations += last - first
        is_met = self.is_met
        return [indices[k] for k in range(first, last) if is_met(x - xs[k], w, ws[k])]

    def _group(self, key: "Any") -> "tuple[Rows, Rows]":
        group = self._groups[key] = ([], [], []), ([], [], [])
        return group

    def _widen(self, side: int, w: int) -> None:
        """Extend the expected lengths to include a length outside them."""
        self.beyond_length += 1
        if w < self._shortest_of[side]:
            self._shortest_of[side] = 0
        else:
            self._longest_of[side] = min(2 * w, self.longest)  # doubled to make this rare
        self._tabulate()

    def _tabulate(self) -> None:
        """Compute the limits (near, sure) of u for each class of length of each side."""
        self._limits: list[list[tuple[int, int]]] = []
        self._shift: list[int] = []
        self.reach = -1
        for side in (0, 1):
            longest, shortest = self._longest_of[side], self._shortest_of[side]
            shift = 0
            while longest >> shift >= BUCKETS:
                shift += 1
            rows = []
            for bucket in range((longest >> shift) + 1):
                w_min = min(max(bucket << shift, shortest), longest)
                w_max = min(max(((bucket + 1) << shift) - 1, shortest), longest)
                rows.append(self._limits_of(w_min, w_max, self._shortest_of[1 - side], self._longest_of[1 - side]))
                self.reach = max(self.reach, rows[-1][0])
            self._limits.append(rows)
            self._shift.append(shift)

    def _limits_of(self, w_min: int, w_max: int, other_min: int, other_max: int) -> "tuple[int, int]":
        """(near, sure): beyond near no pair matches, up to sure every pair does, for all such lengths; -1 for none."""
        width, p, q = self._width, self._p, self._q
        shortest, longest = (w_min, other_min), (w_max, other_max)
        if 2 * p < q:
            shortest, longest = longest, shortest
        near = width + sum(shortest) - 2 * quantile(shortest[0], shortest[1], p, q) + 2  # the quantile is rounded up
        if width >= w_max + other_max:
            sure = width + sum(longest) - 2 * quantile(longest[0], longest[1], p, q)
        else:
            sure = width + w_max + other_max - 2 * quantile(w_max, other_max, p + q, 2 * q)
        return max(near, -1), max(min(near, sure), -1)

    def _forget(self, side: int, horizon: int, chunk: int) -> None:
        """Drop elements with x below the horizon from one side, in buffers where they are a chunk or a quarter."""
        empty = []
        for key in self._groups:
            group = self._groups[key]
            xs, ws, indices = group[side]
            count = bisect_left(xs, horizon)
            if count and (count >= chunk or 4 * count >= len(xs)):
                xs[:count], ws[:count], indices[:count] = [], [], []
                self.kept -= count
            if not xs and not group[1 - side][0]:
                empty.append(key)
        if self._by_key:
            for key in empty:
                self._groups.pop(key)

    def _overflow(self) -> None:
        """Over the limit: forget the oldest quarter of all intervals."""
        everything: list[int] = []
        for key in self._groups:
            for xs, _, _ in self._groups[key]:
                everything += xs
        everything.sort()
        before = self.kept
        horizon = everything[len(everything) // 4] + 1
        self._forget(0, horizon, 1)
        self._forget(1, horizon, 1)
        self.overflow += before - self.kept


def quantile(w1: int, w2: int, p: int, q: int) -> int:
    """Least integer s with P(U(0, w1) + U(0, w2) <= s) >= p/q, exactly."""
    lo, hi = (w1, w2) if w1 <= w2 else (w2, w1)
    if 2 * hi * p <= lo * q:
        square = -(-2 * p * lo * hi // q)
        root = isqrt(square)
        return root if root * root == square else root + 1
    if 2 * hi * (q - p) <= lo * q:
        return w1 + w2 - isqrt(2 * (q - p) * lo * hi // q)
    return -(-(2 * p * hi + lo * q) // (2 * q))


def isqrt(n: int) -> int:
    """Largest integer whose square is at most n >= 0; boards have no math.isqrt."""
    root = 1
    while root * root <= n:
        root <<= 1
    while root * root > n:
        root = (root + n // root) >> 1
    return root


def _insert(rows: "Rows", x: int, w: int, index: "Any") -> None:
    """Insert an interval at its place by time, after those of the same time."""
    xs, ws, indices = rows
    place = bisect_right(xs, x)
    xs.insert(place, x)
    ws.insert(place, w)
    indices.insert(place, index)
