"""A condition on the streams of stored readings, for readers of Parquet."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.rules.model import name_regex

_NOT_DERIVED = r"(?!\$)"


def streams_in(names: Sequence[str]) -> pc.Expression:
    """True for readings of these streams; names or patterns as in rules, such as dock/tags and shelf/#."""
    plain = [name for name in names if not set(name) & {"+", "#"}]
    condition = pc.field("stream").isin(pa.array(plain, pa.string()))
    for pattern in (name for name in names if set(name) & {"+", "#"}):
        text = name_regex(pattern).removeprefix(_NOT_DERIVED)  # the library has no look-ahead
        mine = _matches(f"^(?:{text})\\z")  # not "$", which a line end at the end would pass too
        condition |= mine & ~_matches(r"^\$") if pattern[0] in "+#" else mine
    return condition


def _matches(regex: str) -> pc.Expression:
    return pc.match_substring_regex(pc.field("stream"), regex)
