"""Results of the jobs as text for people, a line each."""

from datetime import UTC, datetime
from typing import Any


def pair_text(pair: dict[str, Any]) -> str:
    """A pair in one line: key, gateway and interval of both sides, probability."""
    sides = [f"{pair[f'{x}_gateway']} {_interval(pair[f'{x}_t_min'], pair[f'{x}_t_max'])}" for x in "ab"]
    return f"{pair['key']}  {'  '.join(sides)}  p = {pair['probability']:.4f}"


def match_text(match: dict[str, Any]) -> str:
    """A match in one line: key, gateway and interval of each event."""
    events = [f"{e['gateway']} {_interval(e['t_min'], e['t_max'])}" for e in match["events"]]
    return f"{match['key']}  {'  '.join(events)}"


def verdict_text(verdict: dict[str, Any]) -> str:
    """A verdict in one line: gateway of each process, and the interval in which it began."""
    states = [f"{s['name']} since {_interval(s['t_min'], s['t_max'])}" for s in verdict["states"]]
    return f"{verdict['verdict']} {verdict['rule']}: {'  '.join(states)}"


def _interval(t_min: int, t_max: int) -> str:
    first, last = (datetime.fromtimestamp(t / 1e6, UTC) for t in (t_min, t_max))
    return f"[{first:%H:%M:%S}.{t_min // 1000 % 1000:03d}, {last:%H:%M:%S}.{t_max // 1000 % 1000:03d}]"
