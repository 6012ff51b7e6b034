"""Views of vector clocks, for order CAUSAL: the processes that a reading's clock counts, and its gateway's place in them.

A reading has only the counts. The state readings of its gateway give their meaning, in the attributes `$group`, `$view` and
`$process`: within a boot, each holds for itself and the readings after it, until the next with another view. A view is a
number for an ordered list of gateways and their boots. Counts begin at 0 in every view, so clocks of different views cannot
be compared.

A reading has no place in a group if its gateway is ungrouped (a clock of one count or none), if no state reading before it
has announced the view, or if its clock has another length. It is then ordered only among the readings of its gateway, by
boot and number. A reading also has no place in a view that its boot was in before and left: its counts restarted and would
be taken for the earlier ones.

A gateway's readings must land in the order of their numbers, as one ingest lands them. A reading that lands before the state
reading that announces its view would be taken for one of the previous view.

Limit: the newest PER_BOOT views of a boot and PER_GATEWAY boots of a gateway are known; earlier readings have no place.
"""

import hashlib
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whenabouts_cloud.cep.uncertain.causal import Clocks
from whenabouts_cloud.frontier.times import INT64_MAX
from whenabouts_cloud.landing.schema import IDENTITY, json_in
from whenabouts_cloud.rules.coverage import Ints, codes, encode

PER_BOOT = 256
PER_GATEWAY = 16
MARK = '"$view"'  # occurs in the JSON of a state reading's attributes
STATE = (*IDENTITY, "attrs", "vclock")  # columns of a landing that announce views
RUN = pa.schema(
    [
        ("site", pa.string()),
        ("gateway", pa.string()),
        ("boot", pa.int64()),
        ("seq", pa.int64()),
        ("view", pa.int64()),
        ("process", pa.int64()),
        ("size", pa.int64()),
    ]
)
NOWHERE = -1  # as a process: no place in a group


class Run(NamedTuple):
    """From number `seq` on, a boot's readings are of this view, as process `process` of `size`."""

    seq: int
    view: int
    process: int
    size: int


def runs_of(states: pa.Table) -> pa.Table:
    """The begins of views (RUN), each once, in a table of readings (STATE), which need not be state readings."""
    rows = []
    columns = [states[name].to_pylist() for name in STATE]
    for site, gateway, boot, seq, attrs, vclock in zip(*columns, strict=True):
        announced = _view_of(attrs)
        if announced is not None:
            group, view, process = announced
            rows.append((site, gateway, boot, seq, code(f"{group} {view}"), process, len(vclock or ())))
    views = Views()
    views.add(pa.table([pa.array(x, f.type) for x, f in zip(_transposed(rows), RUN, strict=True)], schema=RUN))
    return views.table()


class Views:
    """The known views, by boot."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, str], dict[int, list[Run]]] = {}  # by gateway and boot

    def add(self, runs: pa.Table) -> None:
        """Add begins of views (RUN), in any order; they may include known ones."""
        for site, gateway, boot, *run in zip(*(column.to_pylist() for column in runs.columns), strict=True):
            boots = self._runs.setdefault((site, gateway), {})
            known = sorted({*boots.get(boot, ()), Run(*run)})
            begins = [known[0], *(b for a, b in itertools.pairwise(known) if a[1:] != b[1:])]
            boots[boot] = begins[-PER_BOOT:]
            for old in sorted(boots)[:-PER_GATEWAY]:
                del boots[old]

    def table(self) -> pa.Table:
        """All known begins of views, as a table of RUN."""
        rows = [
            (*names, boot, *run) for names, boots in self._runs.items() for boot, runs in boots.items() for run in runs
        ]
        return pa.table([pa.array(x, f.type) for x, f in zip(_transposed(rows), RUN, strict=True)], schema=RUN)

    def known(self, events: pa.Table) -> npt.NDArray[np.bool_]:
        """Mask of the events whose place in a group is decided: all but those whose view may still be announced."""
        ungrouped = _sizes(events) <= 1
        return ungrouped | (self._places(events)[1] >= 0)

    def clocks_of(self, events: pa.Table) -> Clocks:
        """The clocks of events with a column `vclock`."""
        sizes, (boots, at) = _sizes(events), self._places(events)
        runs = [run for _, some in boots for run in some]
        view, process, size = (
            np.array([*(run[n] for run in runs), NOWHERE], np.int64)[at] for n in range(1, len(Run._fields))
        )
        process = np.where((size == sizes) & (sizes > 1) & (process < size), process, NOWHERE)
        return Clocks(
            _dense(events["vclock"].combine_chunks(), sizes),
            process,
            events["seq"].to_numpy(),
            _gateways(events),
            events["boot"].to_numpy(),
            view,
        )

    def _places(self, events: pa.Table) -> tuple[list[tuple[tuple[str, str, int], list[Run]]], Ints]:
        """Boots with their runs, and for each event the place of its run among all of these, -1 for none."""
        gateway, boot, seq = _gateways(events), events["boot"].to_numpy(), events["seq"].to_numpy()
        runs_by_boot, at, begin = [], np.full(len(seq), NOWHERE), 0
        for names, boots in self._runs.items():
            of_gateway = gateway == code(" ".join(names))
            if not of_gateway.any():
                continue
            for number, runs in boots.items():
                rows = np.flatnonzero(of_gateway & (boot == number))
                place = np.searchsorted([run.seq for run in runs], seq[rows], side="right") - 1
                at[rows] = np.where(place >= 0, begin + place, NOWHERE)
                runs_by_boot.append(((*names, number), _once(runs)))
                begin += len(runs)
        return runs_by_boot, at


def code(text: str) -> int:
    """The number of a gateway or a view: the same in every process and after a restart."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def _view_of(attrs: str | None) -> tuple[str, int, int] | None:
    """Group, view and process of a state reading."""
    attributes = json_in(attrs)
    if not isinstance(attributes, dict):
        return None
    group, view, process = (attributes.get(name) for name in ("$group", "$view", "$process"))
    if not isinstance(group, str) or type(view) is not int or type(process) is not int:
        return None
    if not 0 <= process <= INT64_MAX:
        return None
    return group, view, process


def _once(runs: list[Run]) -> list[Run]:
    """The runs, with no place for those whose view was there before."""
    seen: set[int] = set()
    once = []
    for run in runs:
        once.append(run._replace(process=NOWHERE) if run.view in seen else run)
        seen.add(run.view)
    return once


def _gateways(events: pa.Table) -> Ints:
    """A number for the gateway of each event."""
    site, gateway = encode(events["site"]), encode(events["gateway"])
    sites, names = site.dictionary.to_pylist(), gateway.dictionary.to_pylist()
    pair = codes(site) * max(len(names), 1) + codes(gateway)
    used, at = np.unique(pair, return_inverse=True)
    numbers = [code(f"{sites[n // len(names)]} {names[n % len(names)]}") for n in used.tolist()]
    by_event: Ints = np.array(numbers, np.int64)[at]
    return by_event


def _sizes(events: pa.Table) -> Ints:
    sizes: Ints = pa.compute.list_value_length(events["vclock"]).fill_null(0).to_numpy().astype(np.int64)
    return sizes


def _dense(column: Any, sizes: Ints) -> Ints:
    """Lists as rows of a matrix, padded with zeros."""
    rows: Ints = np.zeros((len(sizes), max(int(sizes.max(initial=1)), 1)), np.int64)
    flat = pa.compute.list_flatten(column).to_numpy(zero_copy_only=False)
    rows[np.arange(rows.shape[1]) < sizes[:, None]] = flat
    return rows


def _transposed(rows: list[tuple[Any, ...]]) -> Iterator[list[Any]]:
    return ([row[n] for row in rows] for n in range(len(RUN)))
