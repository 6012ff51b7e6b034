"""Random patterns of events, for tests of the language and of its meaning."""

from fractions import Fraction

from hypothesis import strategies as st

from whenabouts_cloud.language.pattern import Pattern
from whenabouts_cloud.pattern.elements import And, Event, Negated, Or, Seq, labelled, leaves
from whenabouts_cloud.pattern.expressions import (
    ALLEN,
    Attribute,
    Constant,
    Operation,
    Reference,
    Related,
    TextIs,
    conjuncts,
)

TYPES = "ABC"


def _has_positive(part):
    return not isinstance(part, Negated)


@st.composite
def _leaves(draw, repeats, negatable):
    types = tuple(draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=2, unique=True)))
    if negatable and draw(st.integers(0, 3)) == 0:
        return Negated(types, "?")
    if repeats and draw(st.integers(0, 3)) == 0:
        least = draw(st.integers(1, 2))
        return Event(types, "?", least, least + draw(st.integers(0, 1)))
    return Event(types, "?")


@st.composite
def _groups(draw, depth, repeats):
    kind = draw(st.sampled_from([Seq, Seq, And, Or] if depth else [Seq, Seq, And]))
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        if depth < 2 and draw(st.integers(0, 2)) == 0:
            parts.append(draw(_groups(depth + 1, repeats)))
        else:
            parts.append(draw(_leaves(repeats, kind is not Or)))
    if not any(_has_positive(part) for part in parts):
        parts.append(Event((TYPES[0],), "?"))
    return kind(tuple(parts))


def _named(part, numbers):
    if isinstance(part, Event):
        return Event(part.types, f"x{next(numbers)}", part.least, part.most)
    if isinstance(part, Negated):
        return Negated(part.types, f"x{next(numbers)}")
    return type(part)(tuple(_named(inner, numbers) for inner in part.parts))


def roots(repeats=True):
    """Groups of groups of elements called x0, x1 and so on, in the order of the text."""
    return _groups(0, repeats).map(lambda part: _named(part, iter(range(100))))


@st.composite
def conditions(draw, root, indices=True):
    """A condition on elements of the root, at most one of them negated."""
    elements = list(leaves(root))
    one_negated = [leaf for leaf in elements if isinstance(leaf, Negated)][:1]
    usable = [leaf for leaf in elements if isinstance(leaf, Event)] + one_negated

    def reference():
        leaf = draw(st.sampled_from(usable))
        index = None
        if indices and isinstance(leaf, Event) and leaf.most > 1:
            index = draw(st.sampled_from([None, "last", "prev", 1, leaf.most]))
        return Reference(leaf.label, index)

    def number(depth=0):
        kind = draw(st.integers(0, 3 if depth < 2 else 1))
        if kind == 0:
            return Constant(float(draw(st.integers(0, 3))))
        if kind == 1:
            return Attribute(reference(), draw(st.sampled_from(["value", "t_min", "rssi"])))
        if kind == 2:
            return Operation("negate", (number(depth + 1),))
        return Operation(draw(st.sampled_from("+-*/")), (number(depth + 1), number(depth + 1)))

    def truth(depth=0):
        kind = draw(st.integers(0, 4 if depth < 2 else 2))
        if kind == 0:
            sign = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
            return Operation(sign, (Attribute(reference(), "value"), number()))
        if kind == 1:
            return TextIs(
                Attribute(reference(), "antenna"), draw(st.sampled_from(["left", "#+/ ä", ""])), draw(st.booleans())
            )
        if kind == 2:
            return Related(draw(st.sampled_from(list(ALLEN))), reference(), reference())
        if kind == 3:
            return Operation("not", (truth(depth + 1),))
        return Operation(draw(st.sampled_from(["and", "or"])), tuple(truth(depth + 1) for _ in range(2)))

    return truth()


@st.composite
def patterns(draw):
    """Any pattern that can be written, though it may be above a limit or have a condition that never applies."""
    root = draw(roots())
    select = draw(st.sampled_from(["any", "any", "next", "strict"]))
    mode = draw(st.sampled_from(["certain", "possible", "over", "causal"]))
    emit, skip = draw(
        st.sampled_from([("sure", "none"), ("sure", "to_next"), ("sure", "past_last"), ("arrival", "none")])
    )
    drawn = [draw(conditions(root)) for _ in range(draw(st.integers(0, 2)))]
    probability = Fraction(draw(st.integers(1, 1000)), 1000) if mode == "over" else Fraction(1)
    strict = draw(st.booleans())
    return Pattern(
        root,
        draw(st.integers(int(strict), 10**9)),
        strict_window=strict,
        mode=mode,
        probability=probability,
        where=tuple(one for condition in drawn for one in conjuncts(condition)),
        select=select,
        skip=skip,
        emit=emit,
        per_key=draw(st.booleans()),
    )


def element_of(root, name):
    """The number of the element of that name."""
    return labelled(root)[name][0]
