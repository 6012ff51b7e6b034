"""Results of a rule about the states of a group: rows of RESULT.

`verdict` is "possibly", "definitely" or "definitely in window". `states` has one entry for each process that takes
part: for "definitely" the first state of the run of true states, otherwise a state of a global state that satisfies the
predicate and may have occurred. Each entry names the reading that reported the state, with its stamp as the gateway
gave it. t_min and t_max span the start of the last of these states: from then on they existed together. `result_id` is
a hash of rule, group, view, verdict and states, so the same verdict has the same id in every run and driver. `status`
is "emitted" or "retracted": the verdict of this id, emitted early (EAGER), does not stand.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from whenabouts_cloud.latwin.shard.occurrence import Occurrence
from whenabouts_cloud.rules.model import LatwinRule

STATE = pa.struct(
    [
        ("name", pa.string()),
        ("site", pa.string()),
        ("gateway", pa.string()),
        ("boot", pa.int64()),
        ("seq", pa.int64()),
        ("state", pa.int64()),
        ("t_min", pa.int64()),
        ("t_max", pa.int64()),
    ]
)
RESULT = pa.schema(
    [
        ("result_id", pa.string()),
        ("rule", pa.string()),
        ("group", pa.string()),
        ("view", pa.int64()),
        ("verdict", pa.string()),
        ("status", pa.string()),
        ("t_min", pa.int64()),
        ("t_max", pa.int64()),
        ("states", pa.list_(STATE)),
    ]
)


def verdict_row(
    rule: LatwinRule, group: str, view: int, names: Sequence[str], verdict: Occurrence, status: str
) -> dict[str, Any]:
    """A row of RESULT; `names` are the gateways of the rule's processes, as "site/gateway"."""
    states = []
    for one in verdict.states:
        site, _, gateway = names[one.slot].partition("/")
        states.append(
            {
                "name": rule.streams[one.slot].name,
                "site": site,
                "gateway": gateway,
                "boot": one.boot,
                "seq": one.seq,
                "state": one.number,
                "t_min": one.t_min,
                "t_max": one.t_max,
            }
        )
    return {
        "result_id": result_id(rule, group, view, verdict),
        "rule": rule.name,
        "group": group,
        "view": view,
        "verdict": rule.modality + (" in window" if rule.in_window else ""),
        "status": status,
        "t_min": max(one.t_min for one in verdict.states),
        "t_max": max(one.t_max for one in verdict.states),
        "states": states,
    }


def result_id(rule: LatwinRule, group: str, view: int, verdict: Occurrence) -> str:
    """The id of a verdict. Names of rules and streams have no spaces, so the hashed text is unambiguous."""
    numbers = [(one.slot, one.number) for one in verdict.states] + [verdict.since or (0, -1)]
    states = " ".join(f"{rule.streams[slot].name} {number}" for slot, number in numbers)
    text = f"{rule.name} {rule.modality} {rule.in_window} {view} {states} {group}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def table_of(rows: Iterable[dict[str, Any]]) -> pa.Table:
    """Rows as a table of RESULT."""
    return pa.Table.from_pylist(list(rows), schema=RESULT)
