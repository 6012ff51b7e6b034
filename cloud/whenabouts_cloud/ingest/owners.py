"""Which gateway may publish which streams: a file that names them, and the rules that a gateway was sent.

The file is JSON, `whenabouts-cloud enrol` writes it:

    {"gateways": {"warehouse/dock-1": {"streams": ["dock/tags", "dock/+"], "revoked": false},
                  "warehouse/dock-2": {"streams": null}}}

Patterns have the wildcards of STREAM ... FROM; without patterns (null) a gateway may publish any stream. A stream derived by
a rule, `$rule/...`, may be published by gateways that were sent that rule, whatever the file says, and by those of which a
pattern of the file names it: they have the rule from a file of their own.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whenabouts_cloud.file_version import file_version
from whenabouts_cloud.rules.model import name_regex
from whenabouts_protocol.logs import Log
from whenabouts_protocol.messages.compiled_rule import DERIVED_PREFIX

MAX_FILE_BYTES = 64 << 20
MAX_SENT_RULES = 256  # remembered of one gateway
MAX_SENT_GATEWAYS = 100_000

Gateway = tuple[str, str]  # site, gateway
log = Log(__name__)


class OwnersError(Exception):
    """The file cannot be used. The text names the cause and what was expected."""


@dataclass(frozen=True, slots=True)
class _Entry:
    streams: "re.Pattern[str] | None"  # None: any
    revoked: bool


class Owners:
    """Answers whether a gateway may publish. `file`: entries of the file by "site/gateway"; None: there is no file."""

    def __init__(self, file: Mapping[str, _Entry] | None = None) -> None:
        self._file = file
        self._sent: dict[Gateway, set[str]] = {}

    def replace(self, file: Mapping[str, _Entry]) -> None:
        """Use the entries of a file that has changed."""
        self._file = file

    def note_sent(self, origin: Gateway, derived: Iterable[str]) -> bool:
        """Note that a gateway was sent rules with these derived streams; True if some of them are new.

        Rules that were taken back stay noted, since the gateway's spool may still hold readings of them.
        """
        known = self._sent.get(origin, set())
        new = sorted(set(derived) - known)[: MAX_SENT_RULES - len(known)]
        if not new or (not known and len(self._sent) >= MAX_SENT_GATEWAYS):
            return False
        self._sent[origin] = known | set(new)
        return True

    def snapshot(self) -> dict[str, list[str]]:
        """The derived streams of the rules that each gateway was sent."""
        return {"/".join(origin): sorted(derived) for origin, derived in self._sent.items()}

    def restore(self, snapshot: Mapping[str, list[str]]) -> None:
        """Continue with a snapshot."""
        for name, derived in snapshot.items():
            site, _, gateway = name.partition("/")
            self.note_sent((site, gateway), derived)

    def refusal(self, origin: Gateway) -> str | None:
        """Why a gateway may publish nothing, None if it may."""
        if self._file is None:
            return None
        entry = self._file.get("/".join(origin))
        if entry is None:
            return "is not in the file of gateways"
        return "is revoked" if entry.revoked else None

    def may_publish(self, origin: Gateway, stream: str) -> bool:
        """True if a gateway may publish a stream; none, if the file does not name it or says that it is revoked."""
        entry = None if self._file is None else self._file.get("/".join(origin))
        if self._file is not None and (entry is None or entry.revoked):
            return False
        patterns = None if entry is None else entry.streams
        if patterns is None:
            return not stream.startswith(DERIVED_PREFIX) or stream in self._sent.get(origin, ())
        return patterns.fullmatch(stream) is not None or stream in self._sent.get(origin, ())


class OwnersFile:
    """Keeps `owners` as the file is; one that cannot be used later changes nothing and is logged once.

    Raises:
        OwnersError: as `read_owners`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = file_version(path)  # before it is read: it may change meanwhile
        self.owners = Owners(read_owners(path))

    def look(self) -> None:
        """Read the file if it has changed since the last look."""
        version = file_version(self._path)
        if version == self._seen:
            return
        self._seen = version
        try:
            self.owners.replace(read_owners(self._path))
            log.info("gateways.changed", file=self._path)
        except OwnersError as error:
            log.error("gateways.unusable", "the previous one stays in use", error=error)


def read_owners(path: Path) -> dict[str, _Entry]:
    """Read the file of gateways.

    Raises:
        OwnersError: it cannot be read, or is not such a file.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ValueError(f"found {path.stat().st_size} bytes, expected at most {MAX_FILE_BYTES}")
        gateways = json.loads(path.read_bytes())["gateways"]
        if not isinstance(gateways, dict) or not all(isinstance(entry, dict) for entry in gateways.values()):
            raise ValueError("found no object of objects under gateways")
        return {name: _entry(name, entry) for name, entry in gateways.items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OwnersError(
            f'gateways {path}: cannot be used ({error}); expected {{"gateways": {{"SITE/GATEWAY": {{"streams": [...]}}}}}}, '
            "as `whenabouts-cloud enrol` writes it"
        ) from None


def _entry(name: str, entry: Any) -> _Entry:
    streams, revoked = entry.get("streams"), entry.get("revoked", False)
    if not (streams is None or (type(streams) is list and all(type(stream) is str for stream in streams))):
        raise ValueError(f"{name}: found {streams!r} for streams, expected null or patterns of names")
    if type(revoked) is not bool:
        raise ValueError(f"{name}: found {revoked!r} for revoked, expected true or false")
    # Alternatives of one expression, in which an empty list matches nothing.
    pattern = None if streams is None else re.compile("|".join(f"(?:{name_regex(s)})" for s in streams) or r"(?!)")
    return _Entry(pattern, revoked)
