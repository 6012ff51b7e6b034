"""Pictures of rules as they are written: of events the automaton, of pairs the probability, of states the windows."""

from whenabouts_cloud.rules import explain_events, pair_picture
from whenabouts_cloud.rules.model import CepRule, CorrelateRule, LatwinRule, Rule
from whenabouts_cloud.rules.states import box_of
from whenabouts_cloud.svg import LETTER, LINE, MARGIN, Page, short

MAX_NAME = 30  # letters of a stream that are shown
STATE, GAP = 12, 4  # px of a state in a window, and between two
STYLE = ".state{fill:#c9ced6}.latest{fill:#5fae74}"
DARK = ".state{fill:#4a5058}.latest{fill:#3f8f57}"


def picture(rule: Rule) -> str:
    """The picture of a rule as the text of an SVG file."""
    if isinstance(rule, CepRule):
        return explain_events.picture(rule)
    return pair_picture.picture(rule) if isinstance(rule, CorrelateRule) else _windows(rule)


def _windows(rule: LatwinRule) -> str:
    """The windows of a rule about states: a row for each gateway, the latest state at the right."""
    modality = f"{rule.modality.upper()}{' IN WINDOW' if rule.in_window else ''}"
    page = Page(f"{rule.name}: {modality} {rule.predicate.text()}", STYLE, DARK)
    names = [short(stream.name, MAX_NAME) for stream in rule.streams]
    left = MARGIN + (max(map(len, names)) + 2) * LETTER
    right = left + max(rule.windows) * (STATE + GAP)
    page.bottom += LINE // 2
    for name, stream, window in zip(names, rule.streams, rule.windows, strict=True):
        page.bottom += LINE
        group = page.group(f"{stream.name}{stream.owner}: its last {window} states")
        page.text(MARGIN, page.bottom, name, "", group)
        for n in range(window):
            box = (right - (n + 1) * (STATE + GAP), page.bottom - STATE, STATE, STATE)
            page.box(group, box, "state" if n else "latest", 2)
    page.reach(right)
    page.bottom += LINE // 2
    page.line(f"group {rule.group}; the latest state of each gateway at the right", "end")
    if rule.by_runs:
        page.line("decided by runs of states: the windows do not matter", "end")
    else:
        page.line(f"at most {box_of(rule.windows)} global states in the windows", "end")
    return page.finish()
