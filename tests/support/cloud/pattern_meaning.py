"""The matches of a pattern on points of one key, computed slowly and twice: by walking the pattern, and by reading its plan.

The first uses no alternatives, masks or programs: it assigns events to elements in every way and tests whether each group
holds with them. An event is (type name, t, attributes); both give the set of matches as rows of event indices.
"""

import math
import operator
from itertools import combinations, pairwise, product

from support.cloud.patterns import element_of
from whenabouts_cloud.pattern.elements import And, Event, Negated, Or, Seq, leaves
from whenabouts_cloud.pattern.expressions import Attribute, Constant, Related, TextIs, references
from whenabouts_cloud.pattern.plan import NEGATED

COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
CALCULATE = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def by_pattern(pattern, events):
    """The matches, by the pattern as it is written."""
    elements = list(leaves(pattern.root))
    matches = set()
    for given, present in _choices(_numbered(pattern.root, iter(range(100))), elements, events):
        chosen = [i for indices in given.values() for i in indices]
        if len(set(chosen)) < len(chosen):
            continue
        times = [events[i][1] for i in chosen]
        wide = max(times) - min(times)
        if wide > pattern.window_us or (pattern.strict_window and wide == pattern.window_us):
            continue
        walk = _Walk(pattern, events, elements, given, present)
        if walk.group(walk.tree, None, None) and walk.conditions() and (pattern.select == "any" or walk.selected()):
            matches.add(walk.row())
    return matches


def _numbered(part, numbers):
    """The pattern with each element as its number."""
    if isinstance(part, Event | Negated):
        return next(numbers)
    return type(part), [_numbered(inner, numbers) for inner in part.parts]


def _choices(part, elements, events):
    """(events of each positive element, elements that are present), for every way to choose them."""
    if isinstance(part, int):
        leaf = elements[part]
        if isinstance(leaf, Negated):
            yield {}, {part}
            return
        fit = [i for i, event in enumerate(events) if event[0] in leaf.types]
        for k in range(leaf.least, leaf.most + 1):
            for chosen in combinations(sorted(fit, key=lambda i: events[i][1]), k):
                times = [events[i][1] for i in chosen]
                if all(a < b for a, b in pairwise(times)):
                    yield {part: chosen}, {part}
        return
    kind, parts = part
    if kind is Or:
        for inner in parts:
            yield from _choices(inner, elements, events)
        return
    for combined in product(*(list(_choices(inner, elements, events)) for inner in parts)):
        yield {n: c for given, _ in combined for n, c in given.items()}, set().union(*(p for _, p in combined))


class _Walk:
    """One assignment of events to elements."""

    def __init__(self, pattern, events, elements, given, present):
        self.pattern, self.events, self.elements, self.given, self.present = pattern, events, elements, given, present
        self.tree = _numbered(pattern.root, iter(range(100)))

    def row(self):
        row = []
        for n, leaf in enumerate(self.elements):
            if isinstance(leaf, Event):
                chosen = self.given.get(n, ())
                row += [*chosen, *[-1] * (leaf.most - len(chosen))]
        return tuple(row)

    def times(self, part):
        """The times of all events in a part."""
        if isinstance(part, int):
            return [self.events[i][1] for i in self.given.get(part, ())]
        return [t for inner in part[1] for t in self.times(inner)]

    def group(self, part, left, right):
        """True if a group holds that lies after the time left and before the time right; None: no event on that side."""
        kind, parts = part
        parts = [p for p in parts if self._is_present(p)]
        for n, inner in enumerate(parts):
            lo, hi = left, right
            if kind is Seq:
                before = [self.times(p) for p in parts[:n] if self.times(p)]
                after = [self.times(p) for p in parts[n + 1 :] if self.times(p)]
                lo = max(before[-1]) if before else left
                hi = min(after[0]) if after else right
                own = self.times(inner)
                if own and (
                    (before and min(own) <= max(map(max, before))) or (after and max(own) >= min(map(min, after)))
                ):
                    return False
            if isinstance(inner, int):
                if isinstance(self.elements[inner], Negated) and self._found(inner, lo, hi):
                    return False
            elif not self.group(inner, lo, hi):
                return False
        return True

    def _is_present(self, part):
        return part in self.present if isinstance(part, int) else any(self._is_present(p) for p in part[1])

    def _found(self, n, lo, hi):
        """True if an event of a negated element lies in its gap."""
        times = self.times(self.tree)
        w, strict = self.pattern.window_us, self.pattern.strict_window
        for i, (name, t, _) in enumerate(self.events):
            begun = t > lo if lo is not None else (t > max(times) - w or (t == max(times) - w and not strict))
            ended = t < hi if hi is not None else (t < min(times) + w or (t == min(times) + w and not strict))
            if name in self.elements[n].types and begun and ended and self._forbidden(n, i):
                return True
        return False

    def _forbidden(self, n, i):
        given = {**self.given, n: (i,)}
        return all(self.holds(x, given) for x in self.pattern.where if n in self._named(x))

    def _named(self, expression):
        return {element_of(self.pattern.root, r.name) for r in references(expression)}

    def conditions(self):
        """True if the conditions on positives hold."""
        for expression in self.pattern.where:
            if not any(isinstance(self.elements[n], Negated) for n in self._named(expression)) and not self.holds(
                expression, self.given
            ):
                return False
        return True

    def holds(self, expression, given, needed=None):
        """True if a condition holds for every repetition, of those that involve `needed` = (element, repetition)."""
        named = self._named(expression)
        if not named <= given.keys():
            return True
        loose = sorted(
            {element_of(self.pattern.root, r.name) for r in references(expression) if r.index in (None, "prev")}
        )
        for now in product(*(range(1, len(given[n]) + 1) for n in loose)):
            at = dict(zip(loose, now, strict=True))
            meant = {}
            for r in references(expression):
                n = element_of(self.pattern.root, r.name)
                k = {None: at.get(n, 0), "prev": at.get(n, 0) - 1, "last": len(given[n])}.get(r.index, r.index)
                meant[r] = (n, k)
            if any(not 1 <= k <= len(given[n]) for n, k in meant.values()):
                continue
            if needed is not None and needed not in meant.values():
                continue
            if not self._value(expression, {r: given[n][k - 1] for r, (n, k) in meant.items()}):
                return False
        return True

    def _value(self, x, at):
        if isinstance(x, Constant):
            return x.value
        if isinstance(x, Attribute):
            _, t, attributes = self.events[at[x.reference]]
            return float(t) if x.column in ("t_min", "t_max") else attributes.get(x.column, math.nan)
        if isinstance(x, TextIs):
            text = self.events[at[x.attribute.reference]][2].get(x.attribute.column)
            return text is not None and (text == x.word) == x.equal
        if isinstance(x, Related):
            a, b = (self.events[at[r]][1] for r in (x.a, x.b))
            return {"before": a < b, "after": a > b, "equals": a == b}.get(x.relation, False)
        values = [self._value(operand, at) for operand in x.operands]
        if x.op in COMPARE:
            return not any(math.isnan(v) for v in values) and COMPARE[x.op](*values)
        if x.op in CALCULATE:
            return CALCULATE[x.op](*values)
        if x.op == "/":
            return values[0] / values[1] if values[1] else math.nan
        if x.op in ("and", "or"):
            return all(values) if x.op == "and" else any(values)
        return not values[0] if x.op == "not" else -values[0]

    def selected(self):
        """True if no event between two neighbours could have been taken (NEXT), or if there is none (STRICT)."""
        steps = sorted((self.events[i][1], n, k, i) for n, c in self.given.items() for k, i in enumerate(c, 1))
        if any(a[0] == b[0] for a, b in pairwise(steps)):
            return False
        words = set(self._words(self.tree))
        for p in range(1, len(steps)):
            prefix = tuple(step[1] for step in steps[:p])
            for i, (_, t, _) in enumerate(self.events):
                if not steps[p - 1][0] < t < steps[p][0]:
                    continue
                if self.pattern.select == "strict" or self._could_follow(steps[:p], prefix, i, words):
                    return False
        return True

    def _could_follow(self, taken, prefix, i, words):
        for n in {word[len(prefix)] for word in words if word[: len(prefix)] == prefix and len(word) > len(prefix)}:
            if self.events[i][0] not in self.elements[n].types:
                continue
            given = {}
            for _, m, _, j in taken:
                given[m] = (*given.get(m, ()), j)
            given[n] = (*given.get(n, ()), i)
            of_it = [x for x in self.pattern.where if n in self._named(x)]
            if all(self.holds(x, given, needed=(n, len(given[n]))) for x in of_it):
                return True
        return False

    def _words(self, part):
        """Every order in which elements can come, with the alternatives that were taken here."""
        if isinstance(part, int):
            leaf = self.elements[part]
            if isinstance(leaf, Event):
                yield from ((part,) * k for k in range(leaf.least, leaf.most + 1))
            else:
                yield ()
            return
        kind, parts = part
        inner = [list(self._words(p)) for p in parts if self._is_present(p)]
        for words in product(*inner):
            yield from [sum(words, ())] if kind is not And else _shuffles(list(words))


def _shuffles(words):
    words = [word for word in words if word]
    if not words:
        yield ()
    for n, word in enumerate(words):
        for rest in _shuffles([*words[:n], word[1:], *words[n + 1 :]]):
            yield (word[0], *rest)


def by_plan(plan, type_names, events):
    """The matches, by the alternatives of a plan."""
    matches = set()
    for alternative in plan.alternatives:
        fit = [
            [i for i in range(len(events)) if _is(plan, plan.classes[c], type_names, events, i)]
            for c in alternative.classes
        ]
        for chosen in product(*fit):
            if len(set(chosen)) == len(chosen) and _plays(plan, alternative, type_names, events, chosen):
                row = [-1] * plan.width
                for column, i in zip(alternative.columns, chosen, strict=True):
                    row[column] = i
                matches.add(tuple(row))
    return matches


def _is(plan, event_class, type_names, events, i):
    return type_names.index(events[i][0]) in event_class.types and _run(plan, event_class.condition, events, {0: i})


def _plays(plan, alternative, type_names, events, chosen):
    times = [events[i][1] for i in chosen]
    wide, w = max(times) - min(times), plan.window
    if wide > w or (wide == w and plan.strict_window):
        return False
    for p, mask in enumerate(alternative.before):
        if any(mask >> q & 1 and times[q] >= times[p] for q in range(len(times))):
            return False
    at = dict(enumerate(chosen))
    if not all(_run(plan, condition, events, at) for condition in alternative.conditions):
        return False
    for negation in alternative.negations:
        lo = [times[q] for q in range(len(times)) if negation.left >> q & 1]
        hi = [times[q] for q in range(len(times)) if negation.right >> q & 1]
        for i, (_, t, _) in enumerate(events):
            begun = t > max(lo) if lo else t > max(times) - w - (not plan.strict_window)
            ended = t < min(hi) if hi else t < min(times) + w + (not plan.strict_window)
            forbidden = _is(plan, plan.classes[negation.event_class], type_names, events, i)
            if begun and ended and forbidden and _run(plan, negation.condition, events, {**at, NEGATED: i}):
                return False
    return True


def _column(name, event):
    _, t, attributes = event
    if name in ("t_min", "t_max"):
        return float(t)
    name, quote, word = name.partition('="')
    value = attributes.get(name)
    if value is None:
        return math.nan
    return float(value == word[:-1]) if quote else value


def _run(plan, program, events, at):
    """The truth of a program by a stack of numbers."""
    stack = []
    for step in program:
        if step.op == "attribute":
            stack.append(_column(plan.attributes[step.column], events[at[step.element]]))
        elif step.op == "constant":
            stack.append(step.value)
        elif step.op == "not":
            stack.append(float(not stack.pop()))
        elif step.op == "negate":
            stack.append(-stack.pop())
        else:
            b, a = stack.pop(), stack.pop()
            if step.op in COMPARE:
                stack.append(float(not (math.isnan(a) or math.isnan(b)) and COMPARE[step.op](a, b)))
            elif step.op in CALCULATE:
                stack.append(CALCULATE[step.op](a, b))
            elif step.op == "/":
                stack.append(a / b if b else math.nan)
            else:
                stack.append(float(a and b) if step.op == "and" else float(a or b))
    assert len(stack) <= 1
    return not stack or bool(stack[0])
