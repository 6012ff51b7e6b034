"""Engines of event patterns by name, and all matches of a batch at once."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from whenabouts_cloud.cep.runtime.active_patterns import Running
from whenabouts_cloud.cep.runtime.checksum import opened
from whenabouts_cloud.cep.runtime.infa_hts import Emit, Engine, EngineLimitError, Index, Order
from whenabouts_cloud.cep.runtime.output import Floats
from whenabouts_cloud.cep.runtime.output import Out as Out
from whenabouts_cloud.cep.runtime.validate import column, whole
from whenabouts_cloud.cep.uncertain.causal import Clocks
from whenabouts_cloud.pattern.plan import TIME_LIMIT, Compilable, Plan, plan_of
from whenabouts_protocol.lazy import load

BASELINES = {  # by method: module of `research.baselines` and its class, imported on first use
    "kslack": "kslack:KSlack",
    "conservative": "conservative:Conservative",
    "aggressive": "aggressive:Aggressive",
}
ZIP = b"PK"  # first bytes of the snapshots of the baselines


class _Engines:
    """Engines of event patterns: created by calling `engine`, or by `engine.restore` from a snapshot."""

    def __call__(
        self, pattern: Compilable | Plan | Sequence[Compilable | Plan], type_names: Sequence[str], emit: Emit = "sure",
        method: str = "infa_hts", k: int | None = None, order: Order = "kbound", sources: Sequence[int] | None = None,
        pog_every: int = 5, longest: int | None = None,
    ) -> Any:  # fmt: skip
        """Create an engine for one or several patterns, over type codes that are places in `type_names`.

        `k` in ticks is needed for order `kbound`; `longest` overrides the longest stamp that the patterns expect. `emit` is
        for infa_hts only: each baseline has a fixed time at which it emits.

        Raises:
            ValueError: an argument has an unknown value, or k is missing.
        """
        several = (
            [pattern] if isinstance(pattern, Plan) or hasattr(pattern, "plan") else list(cast(Sequence[Any], pattern))
        )
        plans = [plan_of(one, type_names) for one in several]
        if not plans:
            raise ValueError("pattern: found none, expected at least one")
        if order == "kbound" and k is None:
            raise ValueError("k: found none, expected the greatest delay in ticks for order kbound")
        if emit not in ("sure", "arrival"):
            raise ValueError(f"emit: found {emit!r}, expected sure or arrival")
        if k is not None:
            k = whole("k", k)
            if not 0 <= k <= TIME_LIMIT:
                raise ValueError(f"k: found {k}, expected ticks in 0 .. 2^60")
        names = None if sources is None else [whole("sources", source) for source in sources]
        if method in BASELINES:
            if len(plans) > 1:
                raise ValueError(f"pattern: found {len(plans)}, expected one for method {method}")
            return _baseline(method)(plans[0], len(type_names), k=k, order=order, sources=names, pog_every=pog_every)
        if method != "infa_hts":
            raise ValueError(f"method: found {method!r}, expected infa_hts or {', '.join(BASELINES)}")
        return Engine(Running(plans), type_names, emit, order, k or 0, names, longest)

    def restore(self, blob: bytes) -> Any:
        """Restore an engine from a snapshot.

        Raises:
            ValueError: the bytes are no snapshot, damaged, or one of another version.
        """
        if not blob.startswith(ZIP):
            return Engine.restore(blob)
        with zipfile.ZipFile(io.BytesIO(opened(blob))) as file:
            names = set(file.namelist())
        methods = [one for one in map(_baseline, BASELINES) if _arrays(one) <= names]
        if len(methods) != 1:
            raise ValueError(
                "snapshot: found arrays of no method, expected those of kslack, conservative or aggressive"
            )
        return methods[0].restore(blob)


def _baseline(method: str) -> Any:
    """The class of a baseline."""
    module, _, name = BASELINES[method].partition(":")
    return load("whenabouts_cloud.research.baselines", name, ((module, name),))


def _arrays(baseline: Any) -> set[str]:
    """Names of the files in a snapshot of the baseline; no other baseline has all of them."""
    kinds = enumerate(baseline.STATE, 1)
    return {f"{n}.{part}.npy" for n, kind in kinds for part in kind._fields}


engine = _Engines()


def detect(
    pattern: Compilable | Plan, type_names: Sequence[str], type_code: Any, key: Any, t: Any, source: Any = None,
    t_max: Any = None, attributes: Mapping[str, Any] | None = None, clocks: Clocks | None = None,
) -> Index:  # fmt: skip
    """Return all matches among the events: rows of places in the columns, in lexicographic order.

    Only the length of `source` is checked: a whole set of events has no order of arrival.

    Raises:
        ValueError: a column is missing, or has another length, kind or range than expected.
    """
    if source is not None:
        column("source", source, len(column("t", t, None)))
    matches, _ = detected(pattern, type_names, type_code, key, t, t_max, attributes, clocks)
    return matches[np.lexsort(matches.T[::-1])]


def detected(
    pattern: Compilable | Plan, type_names: Sequence[str], type_code: Any, key: Any, t: Any, t_max: Any = None,
    attributes: Mapping[str, Any] | None = None, clocks: Clocks | None = None,
) -> tuple[Index, Floats]:  # fmt: skip
    """Like `detect`, but in the order in which they became final, plus each match's probability (see `Out.probability`)."""
    begin = column("t", t, None)
    end = begin if t_max is None else column("t_max", t_max, len(begin))
    longest = int((end - begin).max(initial=0))
    order = np.argsort(end, kind="stable")
    one = engine(pattern, type_names, k=0, longest=longest)
    kinds, keys = column("type_code", type_code, len(begin)), column("key", key, len(begin))
    values = {name: np.asarray(column)[order] for name, column in (attributes or {}).items()}
    parts: list[Out] = []
    done = 0
    while done < len(order) or not parts:
        rest = order[done:]
        some = None if clocks is None else clocks.take(rest)
        try:
            out = one.feed(
                kinds[rest], keys[rest], begin[rest], None, None if t_max is None else end[rest],
                {name: value[done:] for name, value in values.items()}, some,
            )  # fmt: skip
            done = len(order)
        except EngineLimitError as met:
            out = met.out
            done += met.taken
        parts.append(out)
    parts.append(one.finish())
    rows = np.concatenate([out.matches for out in parts])
    matches: Index = np.append(order, -1)[rows]
    return matches, np.concatenate([out.probability for out in parts])
