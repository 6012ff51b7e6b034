"""Formats explanations of rules as lines for people."""

from whenabouts_cloud.rules.explain_events import EventsExplained
from whenabouts_cloud.rules.explain_pairs import Bounds, Explanation, Side
from whenabouts_cloud.rules.explain_states import StatesExplained
from whenabouts_cloud.rules.explain_states import lines as states_lines


def lines(e: Explanation | EventsExplained | StatesExplained) -> list[str]:
    """The explanation of a rule, a line for each point."""
    if isinstance(e, StatesExplained):
        return states_lines(e)
    if isinstance(e, EventsExplained):
        return _events_lines(e)
    shown = [
        f"rule {e.name}",
        f"  runs         {f'at the edge, on {e.place}' if e.place else 'in the cloud'}: {e.reason}",
        f"  condition    {time_text(e.lo_us)} <= @{e.sides[1].alias} - @{e.sides[0].alias} <= {time_text(e.hi_us)}, "
        f"probability at least {e.confidence}",
        f"  can match    stamps up to {time_text(e.longest_us)} long",
        *(f"  only where   {text}" for text in e.tags),
    ]
    shown += _names(e.words)
    for side in e.sides:
        shown += _side_lines(side)
    if e.memory_bytes is not None:
        kept = sum(side.readings or 0 for side in e.sides)
        shown.append(f"  memory       {e.memory_bytes / 1e6:.1f} MB for {kept} readings")
    return shown


def _events_lines(e: EventsExplained) -> list[str]:
    lines = [
        f"rule {e.name}",
        f"  runs         in the {e.where}: {e.reason}",
        f"  pattern      {e.text.splitlines()[-1].strip()}",
        *(f"  only from    {owned}" for owned in e.owned),
        *_names(e.words),
        f"  match        {', '.join(e.places)}",
        f"  alternatives {e.alternatives}",
        f"  window       {time_text(e.window_us)}, {'less than that' if e.strict_window else 'that much included'}",
        f"  stamps       up to {time_text(e.longest_us)} long; waits up to {time_text(e.lateness_us)} for a silent gateway",
        f"  emitted      {_emitted(e)}",
        f"  kept         until an event ends {time_text(e.keep_us)} later",
    ]
    for gap in e.gaps:
        source_us = gap.after_us - e.lateness_us
        lines += [
            f"  no {gap.element} {gap.where}",
            f"    sure       {time_text(gap.after_us)} after {gap.final_by} if a gateway is silent; when each source is "
            f"{time_text(source_us)} past {gap.final_by}",
        ]
    return lines + _automaton_lines(e)


def _names(words: tuple[str, ...]) -> list[str]:
    said = "what the EPC in a key says; no comparison holds for a key that says nothing of the kind"
    return [f"  names        {', '.join(words)}: {said}"] if words else []


def _emitted(e: EventsExplained) -> str:
    if e.count is not None:
        return f"{e.count}, with each reading at the middle of its stamp; a period when no reading can enter it"
    return "when sure" if e.emit == "sure" else "on arrival, and retracted if it proves wrong"


def _automaton_lines(e: EventsExplained) -> list[str]:
    if e.state_count is None:
        return ["  automaton    too many states to count, one for each set of types present"]
    lines = [f"  automaton    {counted(e.state_count, 'state')}, one for each set of types present"]
    for n, state in enumerate(e.states):
        moves = ", ".join(f"{name} -> {after}" for name, after in state.moves)
        search = "complete, search" if state.complete else ""
        lines.append(f"    {n:>2} {{{', '.join(state.present)}}} {'; '.join(x for x in (search, moves) if x)}")
    if not e.states:
        lines += [
            f"    {n} present: {counted(states, 'state')}, {complete} complete" for n, states, complete in e.layers
        ]
    return lines


def _side_lines(side: Side) -> list[str]:
    readings = "" if side.readings is None else f", {side.readings} readings"
    stream = f"{side.stream} {side.owner}".strip()
    return [
        f"  {side.alias} ({stream}), stamps of {time_text(side.shortest_us)} to {time_text(side.longest_us)}",
        f"    kept       {time_text(side.keep_us)} after its middle{readings}",
        f"    tested     {100 * side.probe_share:.0f} % of what an order by maximum tests",
        *(f"    length {time_text(b.length_us):>10}: {_bounds(b)}" for b in side.bounds),
    ]


def _bounds(b: Bounds) -> str:
    candidates = f"partners end {time_text(b.candidates_us[0])} to {time_text(b.candidates_us[1])} after it begins"
    sure = "none sure" if b.sure_us is None else f"sure {time_text(b.sure_us[0])} to {time_text(b.sure_us[1])}"
    return f"{candidates}, {sure}"


def time_text(us: int) -> str:
    """A duration in the largest unit in which it is short."""
    for unit, size in (("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1000)):
        if abs(us) >= size:
            return f"{us / size:.6g} {unit}"
    return f"{us} us"


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural unless 1."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
