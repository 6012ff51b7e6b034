"""All hypothesis strategies for what the protocol carries: intervals, readings, batches, messages, and what damages them.

Ties, zero lengths, equal stamps and repeated values are drawn often, because they are the ordinary case.
"""

from hypothesis import strategies as st

from whenabouts_protocol import Ack, Birth, Heartbeat, Status
from whenabouts_protocol.layout import CONDITIONS
from whenabouts_protocol.reading import CLOCK_STATES, INT64_MAX, INT64_MIN, KINDS, TIME_US_MAX, Reading
from whenabouts_protocol.topics import is_name

EPOCH_US = 1_790_000_000_000_000  # some day in 2026

counts = st.one_of(st.integers(0, 30), st.integers(0, 1 << 32), st.integers(0, INT64_MAX), st.just(INT64_MAX))
int64s = st.one_of(st.integers(-30, 30), st.integers(INT64_MIN, INT64_MAX), st.sampled_from([INT64_MIN, INT64_MAX]))
times_us = st.one_of(
    st.integers(-20, 20),
    st.integers(EPOCH_US, EPOCH_US + 1_000_000),
    st.integers(1 - TIME_US_MAX, TIME_US_MAX - 1),
    st.sampled_from([1 - TIME_US_MAX, TIME_US_MAX - 1]),
)
floats = st.floats(allow_nan=False, allow_infinity=False)

names = st.one_of(
    st.sampled_from(["dock-1", "w", "Tor_3"]),
    st.text(st.characters(codec="utf-8", min_codepoint=0x21), min_size=1, max_size=12).filter(is_name),
)
labels = st.one_of(
    st.sampled_from(["dock/tags", "rssi", "Cel", "°C", "😀"]),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=20),
)
epcs = st.one_of(
    st.sampled_from(["E2801160600002054CC1A0F0", "E2801160600002054CC1A0F1"]),
    st.binary(min_size=1, max_size=16).map(lambda b: b.hex().upper()),
    st.text("0123456789ABCDEFabcdef", min_size=1, max_size=9),  # odd lengths and lower case, which travel as text
    labels,
)
scalars = st.one_of(int64s, floats, st.booleans(), st.text(st.characters(codec="utf-8"), max_size=20))
vclocks = st.one_of(st.just(()), st.lists(counts, max_size=9).map(tuple))
attrs = st.one_of(st.just({}), st.dictionaries(labels, scalars, max_size=4))


@st.composite
def intervals(draw: st.DrawFn, base: int | None = None, length_max: int = 12) -> tuple[int, int]:
    """(t_min, t_max) near `base` (drawn if None: zero or epoch-size), often of length 0 and often touching another."""
    origin = draw(st.sampled_from([0, EPOCH_US, -EPOCH_US])) if base is None else base
    t_min = origin + draw(st.integers(-length_max, length_max))
    return t_min, t_min + draw(st.one_of(st.just(0), st.integers(0, length_max)))


@st.composite
def stamps(draw: st.DrawFn) -> tuple[int, int]:
    """(t_min, t_max) over the whole range that a reading can hold."""
    a, b = draw(times_us), draw(times_us)
    if draw(st.booleans()):
        b = min(a + abs(b) % 300_000, TIME_US_MAX - 1)
    return min(a, b), max(a, b)


@st.composite
def readings(draw: st.DrawFn, site: str | None = None, gateway: str | None = None, boot: int | None = None) -> Reading:
    """One reading; what is not given is drawn."""
    t_min, t_max = draw(stamps())
    return Reading(
        site=draw(names) if site is None else site,
        gateway=draw(names) if gateway is None else gateway,
        boot=draw(counts) if boot is None else boot,
        seq=draw(counts),
        stream=draw(labels),
        kind=draw(st.sampled_from(KINDS)),
        key=draw(st.none() | epcs),
        value=draw(st.none() | scalars),
        unit=draw(st.none() | labels),
        attrs=draw(attrs),
        t_min=t_min,
        t_max=t_max,
        clock_state=draw(st.sampled_from(CLOCK_STATES)),
        vclock=draw(vclocks),
    )


@st.composite
def batches(draw: st.DrawFn, max_size: int = 6) -> list[Reading]:
    """Readings of one boot of one gateway in any order, with repeats of every value that a batch stores once."""
    origin = {"site": draw(names), "gateway": draw(names), "boot": draw(counts)}
    some = draw(st.lists(readings(**origin), min_size=1, max_size=max_size))
    if draw(st.booleans()):  # one stream, one clock, running numbers: what a gateway sends all day
        first = some[0]
        start = min(first.seq, INT64_MAX - len(some))
        for number, reading in enumerate(some):
            reading.stream, reading.kind, reading.unit = first.stream, first.kind, first.unit
            reading.vclock, reading.seq = first.vclock, start + number
    return some


streams_of_births = st.builds(
    lambda known, parts: (*known, *parts),
    st.tuples(labels, st.sampled_from(KINDS), st.none() | labels, counts, counts),
    st.lists(st.none() | counts, max_size=4),
)
births = st.builds(
    Birth,
    names,
    names,
    counts,
    st.lists(streams_of_births, max_size=4),
    st.none() | labels,
    st.lists(labels, max_size=9),
    st.just("") | labels,
)
statuses = st.builds(Status, names, names, counts, st.sampled_from(CONDITIONS))
boots = st.dictionaries(counts, counts, max_size=5)
kept = st.builds(lambda first, more: (first, first + more - 1), st.integers(1, INT64_MAX >> 1), st.integers(0, 1 << 40))
heartbeats = st.builds(
    Heartbeat,
    names,
    names,
    counts,
    st.none() | int64s,
    st.dictionaries(counts, kept, max_size=5),
    st.sampled_from(CLOCK_STATES),
    st.none() | counts,
    counts,
    counts,
    st.none() | counts,
    st.none() | counts,
    st.none() | labels,
    st.none() | counts,
)
acks = st.builds(Ack, names, names, boots)


class OddInt(int):
    """An integer that is no int by type."""


class OddText(str):
    """A text that is no str by type."""

    __slots__ = ()


def anything() -> st.SearchStrategy[object]:
    """Any value of built-in types: what a field can be set to and what a message can hold in any place, and worse."""
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        int64s,
        st.sampled_from([1 << 63, -(1 << 63) - 1, 1 << 64, 10**400]),
        st.floats(),
        st.text(max_size=4),
        st.sampled_from(["\ud800", "a\udfff", "x" * 257, "x" * 5000, "tag", "bounded", "E2"]),
        st.binary(max_size=5),
        st.sampled_from([OddInt(1), OddText("tag"), 1 + 2j, object(), {1, 2}, frozenset(), bytearray(b"E2"), range(3)]),
    )
    keys = st.one_of(st.none(), st.booleans(), st.integers(-2, 12), st.floats(), st.text(max_size=2))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(keys, inner, max_size=4),
        ),
        max_leaves=8,
    )


def cbor_values() -> st.SearchStrategy[object]:
    """Any value that has CBOR bytes at all, tags and oversized integers left out: what a foreign sender may put anywhere."""
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        int64s,
        st.integers(0, 12),
        st.sampled_from([(1 << 64) - 1, -(1 << 64), float("nan"), float("inf")]),
        floats,
        st.text(st.characters(codec="utf-8"), max_size=4),
        st.binary(max_size=5),
    )
    keys = st.one_of(st.integers(-2, 12), st.text(st.characters(codec="utf-8"), max_size=2), st.binary(max_size=2))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(st.lists(inner, max_size=9), st.dictionaries(keys, inner, max_size=9)),
        max_leaves=12,
    )
