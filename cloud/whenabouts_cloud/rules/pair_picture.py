"""Draws the condition of a CORRELATE rule: the probability of a pair by the distance of the middles of its stamps.

A curve for each of up to three pairs of lengths: the shortest, the middle and the longest stamps to expect of the two
streams. Where a curve is above the threshold, the two readings are a pair. Values are exact, with straight lines between.
"""

from dataclasses import dataclass

from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.rules.explain_text import time_text
from whenabouts_cloud.rules.model import CorrelateRule, decimal_text
from whenabouts_cloud.rules.placement import lengths_us
from whenabouts_cloud.svg import GREY, LETTER, LINE, MARGIN, Page

WIDTH, HEIGHT = 480, 150  # px of the graph
STEPS = 120  # between neighbouring values of a curve
STYLE = ".curve{fill:none;stroke-width:1.8}.limit{fill:none;stroke-dasharray:3 3}.axis{fill:none}"


@dataclass(frozen=True)
class Curve:
    """Probability of a pair of stamps of these lengths (us), by the distance from the middle of a to that of b.

    `points`: (twice the distance in us, probability), ascending. `reach_us`: from the least to the greatest distance, in
    us rounded to the inner side, at which they are a pair; None if they never are.
    """

    lengths_us: tuple[int, int]
    points: tuple[tuple[int, float], ...]
    reach_us: tuple[int, int] | None


def picture(rule: CorrelateRule) -> str:
    """The picture as the text of an SVG file."""
    condition = rule.condition
    drawn = curves(rule)
    ends = [point[0] for one in drawn for point in one.points]
    low, high = min(ends), max(ends)
    limits = f"from {time_text(condition.lo_us)} to {time_text(condition.hi_us)}"
    title = f"{rule.name}: @{rule.b_alias} - @{rule.a_alias} {limits}, OVER {decimal_text(condition.ct)}"
    page = Page(title, STYLE)
    top, left = page.bottom + LINE, MARGIN + 8 * LETTER

    def x(doubled: int) -> float:
        return left + round((doubled - low) * WIDTH / (high - low), 1)

    def y(probability: float) -> float:
        return top + round((1 - probability) * HEIGHT, 1)

    page.path("axis", f"M{left} {y(0)}h{WIDTH}M{left} {y(0)}v{-HEIGHT}", GREY)
    page.path("limit", f"M{left} {y(float(condition.ct))}h{WIDTH}", GREY, title="threshold")
    for limit, where in ((condition.lo_us, "from"), (condition.hi_us, "to")):
        page.path("limit", f"M{x(2 * limit)} {y(0)}v{-HEIGHT}", GREY, title=f"{where} {time_text(limit)}")
    for probability in {0.0, 1.0, float(condition.ct)}:
        page.text(MARGIN, int(y(probability)) + 4, f"{probability:.5g}")
    for number, one in enumerate(drawn):
        line = "L".join(f"{x(doubled)} {y(p)}" for doubled, p in one.points)
        page.numbered("curve", f"M{line}", number, _said(rule, one))
    page.reach(left + WIDTH)
    page.bottom = top + HEIGHT
    for limit in {condition.lo_us, condition.hi_us}:
        page.text(int(x(2 * limit)) - len(time_text(limit)) * LETTER // 2, page.bottom + LINE, time_text(limit))
    page.bottom += LINE
    page.line(f"@{rule.b_alias} - @{rule.a_alias}, between the middles of two stamps; upwards the probability", "end")
    for number, one in enumerate(drawn):
        page.legend("curve", number, _said(rule, one))
    if rule.key_equal:
        page.line("only readings of one key")
    for text in rule.tag_texts:
        page.line(f"only where {text}")
    return page.finish()


def curves(rule: CorrelateRule) -> list[Curve]:
    """The curves of a rule, for its shortest, middle and longest stamps; equal ones once. All have the same ends."""
    condition = rule.condition
    sides = [lengths_us(stream, (), condition.longest_us) for stream in (rule.a, rule.b)]
    pairs = list(
        dict.fromkeys([tuple(s[0] for s in sides), tuple(sum(s) // 2 for s in sides), tuple(s[1] for s in sides)])
    )
    total = max(sum(pair) for pair in pairs)
    margin = max(total, condition.width // 4, 8)
    low, high = 2 * condition.lo_us - margin, 2 * condition.hi_us + margin
    return [_curve(condition, (pair[0], pair[1]), low, high) for pair in pairs]


def _curve(condition: Condition, lengths: tuple[int, int], low: int, high: int) -> Curve:
    """By the doubled distance, so that odd lengths have whole numbers: all times are doubled."""
    doubled = Condition("between", lo=2 * condition.lo_us, hi=2 * condition.hi_us, confidence=condition.ct)
    (a, b), total = lengths, sum(lengths)

    def stamps(distance: int) -> tuple[int, int, int, int]:
        return -a, a, distance - b, distance + b

    corners = {2 * limit + side * total for limit in (condition.lo_us, condition.hi_us) for side in (-1, 1)}
    # The jumps of points, and the corners, are kept whatever the step is.
    at = {low + (high - low) * n // STEPS for n in range(STEPS + 1)}
    at |= {
        corner + by for corner in corners for by in ((-1, 0, 1) if total == 0 else (0,)) if low <= corner + by <= high
    }
    points = tuple((distance, doubled.probability(*stamps(distance))) for distance in sorted(at))
    centre = condition.doubled_centre
    if not doubled.holds(*stamps(centre)):
        return Curve(lengths, points, None)
    inside, outside = 0, high - low + 2 * total + 1
    while outside - inside > 1:
        middle = (inside + outside) // 2
        inside, outside = (middle, outside) if doubled.holds(*stamps(centre + middle)) else (inside, middle)
    return Curve(lengths, points, (-((inside - centre) // 2), (centre + inside) // 2))


def _said(rule: CorrelateRule, one: Curve) -> str:
    lengths = f"{rule.a_alias} {time_text(one.lengths_us[0])}, {rule.b_alias} {time_text(one.lengths_us[1])} long"
    if one.reach_us is None:
        return f"{lengths}: never a pair"
    return f"{lengths}: a pair from {time_text(one.reach_us[0])} to {time_text(one.reach_us[1])}"
