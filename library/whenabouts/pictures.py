"""Draws why a row is a pair, a match or a verdict: times as bars, the condition, the probability."""

from typing import TYPE_CHECKING, Any

from whenabouts.explanations import Bar, Explanation, explain
from whenabouts_cloud.display_time import headline
from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.svg import COLOURS, GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 0.5  # of a bar, in rows
EDGE = 1.5  # points around a bar, so that a moment is seen
UNITS = (("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1000), ("us", 1))


def plot(row: Any, text: "str | Condition", among: Any = None, ax: "Axes | None" = None) -> "Axes":
    """Draw what `explain` says, with matplotlib; takes what that takes, and the axes to draw on (None: new ones).

    Each time is a bar, from its earliest to its latest moment; behind those of b lies what the condition allows. The title
    has the verdict and the probability.

    Raises:
        ModuleNotFoundError: there is no matplotlib.
        RuleError, FrameError: as `explain`.
    """
    explanation = row if isinstance(row, Explanation) else explain(row, text, among)
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"plot: found no matplotlib ({error}), expected it; run: pip install 'whenabouts[notebooks]'"
        ) from None
    bars = explanation.bars
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 0.8 + 0.45 * max(len(bars), 1)), layout="constrained")
    origin = min((bar.begin_us for bar in bars), default=0)
    longest = max((bar.end_us for bar in bars), default=1) - origin
    unit, size = next((one for one in UNITS if longest >= one[1]), UNITS[-1])
    _draw(ax, bars, origin, size)
    since = f"{unit} since {headline(origin)}" if abs(origin) >= 1_000_000_000_000 else unit
    ax.set(xlabel=since, title=_title(explanation))
    ax.set_yticks(range(len(bars)), [bar.name for bar in bars])
    ax.invert_yaxis()
    return ax


def _draw(ax: "Axes", bars: tuple[Bar, ...], origin: int, size: int) -> None:
    for place, bar in enumerate(bars):
        if bar.allowed_us is not None:
            low, high = ((end - origin) / size for end in bar.allowed_us)
            ax.barh(place, high - low, left=low, height=0.9, color=GREY, alpha=0.2, label="allowed by the condition")
        begin, length = (bar.begin_us - origin) / size, (bar.end_us - bar.begin_us) / size
        colour = COLOURS[place % len(COLOURS)]
        ax.barh(
            place, length, left=begin, height=HEIGHT, color=colour, edgecolor=colour, linewidth=EDGE, label=bar.name
        )


def _title(explanation: Explanation) -> str:
    if explanation.probability is None:
        return explanation.headline
    return f"{explanation.headline}, probability {explanation.probability:.4g}"
