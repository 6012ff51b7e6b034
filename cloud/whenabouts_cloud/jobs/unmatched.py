"""Streams of rules that match no reading in a landing: a misspelt name yields no results and no error.

Each file is read once, only its columns of names, and none after every stream has been matched. So a rule without mistakes
costs some milliseconds; a stream without readings costs a millisecond for each file that lands, and a long history is read
in pieces of MOST_READ files, one at each call.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from whenabouts_cloud.landing.files import DamagedFileError
from whenabouts_cloud.landing.history import History, Piece, readings_of
from whenabouts_cloud.landing.scan import encoded, read_piece
from whenabouts_cloud.landing.schema import of
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules import CorrelateRule, Rule, Stream

NAMES = of("site", "gateway", "stream").names
MOST_READ = 1000  # files at a call
SHOWN = 8  # names of the landing that are listed with an unmatched stream


class Landed:
    """The names in a landing, as far as they have been read."""

    def __init__(self, landing: Store) -> None:
        self._landing = landing
        self._history = History(landing)
        self._offset: dict[str, Any] = {}
        self._unread: list[Piece] = []
        self._names: set[tuple[str, str, str]] = set()

    def unmatched(self, rules: Iterable[Rule]) -> dict[str, str]:
        """Return a text for each stream of these rules that no reading matches, by name; none while nothing has landed."""
        missing = self._missing(dict.fromkeys(stream for rule in rules for stream in _streams(rule)))
        if not missing:
            return {}
        self._find()
        for _ in range(min(MOST_READ, len(self._unread))):
            self._names |= _names_in(self._landing, self._unread.pop())
            missing = self._missing(missing)
            if not missing:
                return {}
        return {stream.name: self._text(stream) for stream in missing} if self._names and not self._unread else {}

    def _find(self) -> None:
        """Look for new files; the newest are read first."""
        end = self._history.latest(self._offset)
        if end != self._offset:
            self._unread += readings_of(self._history.pieces(self._offset, end))
            self._history.forget(end)
            self._offset = end

    def _missing(self, streams: Iterable[Stream]) -> list[Stream]:
        return [stream for stream in streams if not any(stream.matches(*name) for name in self._names)]

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


def _names_in(landing: Store, piece: Piece) -> set[tuple[str, str, str]]:
    try:
        names = read_piece(landing, piece, encoded(NAMES)).group_by(NAMES).aggregate([])
    except DamagedFileError:  # the job reports it
        return set()
    return {(row["site"], row["gateway"], row["stream"]) for row in names.to_pylist() if None not in row.values()}
