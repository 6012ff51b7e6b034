"""The papers' correlation algorithms as streaming operators with one interface. Recommended: `banded`.

    operator       after                                      matches            limits by     in
    simple         Algorithm 1 (2010)                         each arrival       none          plain Python
    simple_sort    Simple-Sort (2009, Section 5)              each arrival       none          plain Python
    eager          Algorithms 2, 3                            each arrival       maxima        plain Python, integers
    lazy           Algorithms 4, 5                            blocks             maxima        numba
    lookup         Algorithms 6, 7                            blocks             maxima        numba
    banded         correlation mathematics, middle order      each push          middles       numba

"2009" is "Online Timing Correlation of Streaming Data with Uncertain Timestamps", "2010" is "Lazy Approaches for Interval
Timing Correlation of Sensor Data Streams". All give the same pairs, each once, for every order of arrival within the
streams' delays. Printed algorithms that lose or repeat pairs are corrected; each module names its corrections.
"""

from typing import Any

from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.research.operators.base import MAX_BUFFER, LateTuple, Operator, StreamBounds
from whenabouts_cloud.research.operators.counters import Counters
from whenabouts_cloud.research.operators.eager import Eager
from whenabouts_cloud.research.operators.keyed import Keyed
from whenabouts_cloud.research.operators.simple import Simple
from whenabouts_cloud.research.operators.variants import Banded, Lazy, Lookup, SimpleSort

OPERATORS: dict[str, type[Operator]] = {
    kind.name: kind for kind in (Simple, SimpleSort, Eager, Lazy, Lookup, Banded)
}  # fmt: skip
LAZY = ("lazy", "lookup")
DEFAULT_BLOCK = 1000  # the 2010 paper's "enough" tuples

__all__ = ["operator", "Operator", "Keyed", "Counters", "LateTuple", "OPERATORS"]


def operator(
    name: str,
    condition: Condition,
    *,
    delay_a: int,
    delay_b: int,
    pi_a: int | None = None,
    pi_b: int | None = None,
    rho_a: int = 0,
    rho_b: int = 0,
    block: int | None = None,
    every: int | None = None,
    key: bool = False,
    max_buffer: int = MAX_BUFFER,
) -> Any:
    """Make a streaming operator by name; times are in the unit of the condition and the stamps, usually microseconds.

    delay: longest time from a tuple's maximum to its arrival; pi, rho: longest and shortest interval of the stream (pi
    None: the longest that can match). block, every: for `lazy` and `lookup`, evaluate when `block` tuples of a stream
    wait, or when `now` has advanced by `every` (neither: blocks of 1000). key: `push` takes a key, and only equal keys
    pair up. max_buffer: tuples held a side; beyond, the oldest are dropped and counted.

    Raises:
        ValueError: the name is unknown, or an argument contradicts it or another.

    >>> near = operator("eager", Condition("within", d=10, confidence="0.8"), delay_a=5, delay_b=5, pi_a=4, pi_b=4)
    >>> near.push("a", 0, 100, 104, 105), near.push("b", 7, 108, 110, 111)
    ([], [(0, 7)])
    """
    if name not in OPERATORS:
        raise ValueError(f"operator: found {name!r}, expected one of {', '.join(OPERATORS)}")
    if max_buffer < 1:
        raise ValueError(f"max_buffer: found {max_buffer}, expected 1 or more")
    more: dict[str, Any] = {"max_buffer": max_buffer}
    if name in LAZY:
        more |= {"block": DEFAULT_BLOCK if block is None and every is None else block, "every": every}
    elif block is not None or every is not None:
        raise ValueError(f"{name}: found block or every, expected them with {' and '.join(LAZY)} only")
    a, b = (
        StreamBounds(delay, max(condition.longest_us, rho) if pi is None else pi, rho)
        for delay, pi, rho in ((delay_a, pi_a, rho_a), (delay_b, pi_b, rho_b))
    )

    def make() -> Operator:
        return OPERATORS[name](condition, a, b, **more)

    return Keyed(make) if key else make()
