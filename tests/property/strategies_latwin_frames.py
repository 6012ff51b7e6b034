"""Windows over random computations, with what happened before what kept as plain sets beside the clocks."""

from itertools import product
from typing import NamedTuple

from hypothesis import strategies as st

from whenabouts_cloud.latwin.model.frame import Frame, frame


class Seen(NamedTuple):
    """`pasts[j][k]` is all begins (process, state) before, or at, the begin of state k of process j."""

    frame: Frame
    pasts: list[list[set[tuple[int, int]]]]


@st.composite
def computations(draw, processes=(2, 4), events=16):
    """Pasts of all states: each begins by itself or by receiving the knowledge of another at one of its states."""
    n = draw(st.integers(*processes))
    pasts = [[{(j, 0)}] for j in range(n)]
    for _ in range(draw(st.integers(0, events))):
        j = draw(st.integers(0, n - 1))
        past = pasts[j][-1] | {(j, len(pasts[j]))}
        if draw(st.booleans()):
            i = draw(st.integers(0, n - 1))
            past |= draw(st.sampled_from(pasts[i]))
        pasts[j].append(past)
    return pasts


@st.composite
def windows(draw, processes=(2, 4), events=16, size=4):
    """Of each process some neighbouring states, perhaps none, not at the same height."""
    pasts = draw(computations(processes, events))
    n, first, clocks = len(pasts), [], []
    for own in pasts:
        end = draw(
            st.integers(0, len(own)) if draw(st.integers(0, 5)) == 0 else st.integers((len(own) + 1) // 2, len(own))
        )
        begin = max(0, end - draw(st.integers(1, size)))
        first.append(begin)
        clocks.append([[max((k for p, k in past if p == i), default=0) for i in range(n)] for past in own[begin:end]])
    return Seen(frame(first, clocks), pasts)


def held(seen: Frame) -> list[range]:
    """Numbers of the states held, per process."""
    return [range(a, a + c) for a, c in zip(seen.first.tolist(), seen.count.tolist(), strict=True)]


def consistent(seen: Seen) -> list[tuple[int, ...]]:
    """All choices of one held state per process of which none began after another one had ended; in lexical order."""
    n = len(seen.pasts)
    return [
        g
        for g in product(*held(seen.frame))
        if not any((i, g[i] + 1) in seen.pasts[j][g[j]] for i in range(n) for j in range(n) if i != j)
    ]
