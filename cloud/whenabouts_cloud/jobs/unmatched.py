"""Streams of rules that match no reading in a landing: a misspelt name yields no results and no error.

Each file is read once, newest first, only its columns of names, and none after every stream has been matched. So a rule
without mistakes costs some milliseconds; a stream without readings costs some milliseconds per file.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.landing.schema import of
from whenabouts_cloud.rules import CorrelateRule, Rule, Stream

NAMES = of("site", "gateway", "stream").names
SHOWN = 8  # names of the landing that are listed with an unmatched stream


class Landed:
    """The names in a landing folder, as far as they have been read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: set[Path] = set()
        self._names: set[tuple[str, str, str]] = set()

    def unmatched(self, rules: Iterable[Rule]) -> dict[str, str]:
        """Return a text for each stream of these rules that no reading matches, by name; none while nothing has landed."""
        missing = self._missing(dict.fromkeys(stream for rule in rules for stream in _streams(rule)))
        for file in self._new_files():
            if not missing:
                return {}
            self._names |= _names_in(file)
            self._read.add(file)
            missing = self._missing(missing)
        return {stream.name: self._text(stream) for stream in missing} if self._names else {}

    def _missing(self, streams: Iterable[Stream]) -> list[Stream]:
        return [stream for stream in streams if not any(stream.matches(*name) for name in self._names)]

    def _new_files(self) -> Iterator[Path]:
        """Yield unread files, newest first; hidden files and folders are not part of the landing."""
        for file in sorted(self._folder.rglob("*.parquet"), reverse=True):
            hidden = any(part[0] in "._" for part in file.relative_to(self._folder).parts)
            if not hidden and file not in self._read:
                yield file

    def _text(self, stream: Stream) -> str:
        known = sorted({_shown(stream, *names) for names in self._names})
        shown = ", ".join(known[:SHOWN]) + (", ..." if len(known) > SHOWN else "")
        return f'Stream {stream.name}: no reading matches "{stream.pattern}"{stream.owner}; the landing has {shown}'


def _streams(rule: Rule) -> Sequence[Stream]:
    return (rule.a, rule.b) if isinstance(rule, CorrelateRule) else rule.streams


def _shown(stream: Stream, site: str, gateway: str, name: str) -> str:
    """A name of the landing, with its owner where the stream expects another one."""
    if stream.gateway not in (None, gateway) or (stream.gateway and stream.site != site):
        return f"{name} at {site}/{gateway}"
    return name if stream.site in (None, site) else f"{name} at {site}"


def _names_in(file: Path) -> set[tuple[str, str, str]]:
    try:
        names = pq.ParquetFile(file, read_dictionary=NAMES).read(columns=NAMES).group_by(NAMES).aggregate([])
    except (OSError, pa.ArrowInvalid):  # Spark reports the error
        return set()
    return {(row["site"], row["gateway"], row["stream"]) for row in names.to_pylist() if None not in row.values()}
