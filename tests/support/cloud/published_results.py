"""Output folders filled by the sink's own functions, without Spark: matches of a rule, and retractions of some."""

import json
from pathlib import Path

import pyarrow as pa

from whenabouts_cloud.cep.shard.results import RESULT
from whenabouts_cloud.jobs.output.sink import TASK_FILES, ResultSink, batch_folder
from whenabouts_cloud.jobs.output.task_files import TaskFiles
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.shard import StepOutput

PLACES = [
    {"name": "a", "stream": "shelf/1", "site": "s", "gateway": "g", "boot": 1, "seq": 7, "t_min": 1, "t_max": 2},
    {"name": "e", "stream": "exit", "site": "s", "gateway": "g", "boot": 1, "seq": 8, "t_min": 5, "t_max": 9},
]


def match(name: str, rule: str = "unpaid", status: str = "match") -> dict[str, object]:
    """A row of matches; its key is of letters that are hard to quote."""
    return {
        "result_id": name, "rule": rule, "key": 'E2"\\\t,é', "status": status, "t_min": 1, "t_max": 9,
        "probability": 0.5 if status == "match" else None, "events": PLACES,
    }  # fmt: skip


def batch(number: int) -> list[dict[str, object]]:
    """Three matches of two rules, with the retraction of the first of them and of one of the batch before."""
    rows = [match(f"{number}-0"), match(f"{number}-1"), match(f"{number}-2", "stolen")]
    rows.append(match(f"{number}-0", status="retracted"))
    return rows + ([match(f"{number - 1}-1", status="retracted")] if number else [])


def states(batches: int) -> dict[str, str]:
    """Status of each result at the end, by its id."""
    state = {}
    for number in range(batches):
        state |= {str(row["result_id"]): str(row["status"]) for row in batch(number)}
    return state


def publish(out: Path, number: int, rows: list[dict[str, object]] | None = None) -> Path:
    """Publish a batch as a job does; return its folder."""
    sink = ResultSink(RESULT, out)
    files = TaskFiles(Store.at(out.resolve() / TASK_FILES))
    written = files.write(StepOutput(pa.Table.from_pylist(batch(number) if rows is None else rows, RESULT), {}))
    assert sink._published.appear({name: n for _, name, n in json.loads(written)["files"]}, batch_folder(number), "0")
    return out / batch_folder(number)
