"""The answer about health: ingests, dead letters, the landing's size, queries, and how far each is behind."""

from collections import Counter
from typing import Any

from whenabouts_cloud.dashboard.data.landed import LandedIndex
from whenabouts_cloud.dashboard.results.health_state import HealthState
from whenabouts_cloud.dashboard.results.letters import newest_letters
from whenabouts_cloud.dashboard.results.result_index import ResultIndex
from whenabouts_cloud.landing.store import Store


def health(
    landing: Store, state: HealthState | None, landed: LandedIndex | None, results: ResultIndex | None, now_us: int
) -> dict[str, Any]:
    """The answer to /api/health."""
    ingests = {} if state is None else state.ingests()
    reasons: Counter[str] = Counter()
    for record, _ in ingests.values():
        reasons.update(record["dead_letters"])
    letters = _letters(landing)
    for letter in letters:
        reasons.setdefault(letter["reason"], 0)
    for reason, seen in Counter(letter["reason"] for letter in letters).items():
        reasons[reason] = max(reasons[reason], seen)  # an ingest counts since its start
    summary = None if landed is None else landed.summary()
    queries = [] if results is None else results.queries()
    return {
        "now_us": now_us,
        "ingests": [
            {"ingest": name, "at_us": record["at_us"], "age_us": now_us - record["at_us"], "connected": record["connected"],
             "counters": record["counters"], "dead_letters": record["dead_letters"],
             "history": {"at_us": [at for at, _ in history], "landed": [count for _, count in history]}}
            for name, (record, history) in sorted(ingests.items())
        ],
        "dead_letters": {
            "by_reason": [{"reason": reason, "count": count} for reason, count in reasons.most_common(100)],
            "letters": letters,
        },
        "landing": {} if summary is None else {
            "readings": summary.readings, "files": summary.files, "bytes": summary.bytes, "damaged": summary.damaged,
            "first_us": summary.first_us, "last_us": summary.last_us, "latest_landed_us": summary.latest_landed_us,
        },
        "queries": [{**query, "age_us": now_us - query["updated_us"]} for query in queries],
        "lag": {
            "landed_us": None if summary is None or summary.latest_landed_us is None else now_us - summary.latest_landed_us,
            "queries": [{"name": query["name"], "rule": rule, "behind_us": behind} for query in queries
                        for rule, behind in _behind(query, summary.last_us if summary else None)],
        },
    }  # fmt: skip


def _letters(landing: Store) -> list[dict[str, Any]]:
    try:
        return newest_letters(landing)
    except OSError:
        return []


def _behind(query: dict[str, Any], latest_us: int | None) -> list[tuple[str, int]]:
    """How far the slowest stream of each rule is complete behind the newest stamp."""
    found = []
    for rule, figures in list(query["rules"].items())[:100]:
        streams = figures.get("streams_us") if isinstance(figures, dict) else None
        times = [us for us in streams.values() if type(us) is int] if isinstance(streams, dict) else []
        if times and latest_us is not None:
            found.append((str(rule), latest_us - min(times)))
    return found
