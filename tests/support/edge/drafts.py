"""Drafts of readings for the spool and the intake: a key and a stamp each."""

from collections.abc import Sequence

from whenabouts_edge.store.spool import Draft
from whenabouts_protocol import Reading


def draft(key: str, t_us: int = 0, size: int = 0, stream: str = "dock/tags") -> Draft:
    """A reading that waits for its number; size bytes of text make it large."""

    def numbered(boot: int, seq: int) -> Reading:
        return Reading(
            site="bench", gateway="gw", boot=boot, seq=seq, stream=stream, kind="tag", key=key,
            attrs={"note": "x" * size} if size else {}, t_min=t_us, t_max=t_us + 10, vclock=(0,),
        )  # fmt: skip

    return numbered


def drafts(keys: Sequence[str], size: int = 0) -> list[Draft]:
    """One draft a key."""
    return [draft(key, i, size) for i, key in enumerate(keys)]
