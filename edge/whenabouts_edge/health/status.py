"""Writes the agent's status into files for other programs: the status file, and metrics if configured."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from whenabouts_edge.health.metrics import exposition
from whenabouts_edge.replace_file import replace_file
from whenabouts_protocol.logs import Log

FOR_ALL = 0o644  # users of other programs must be able to read it, despite the umask

log = Log(__name__)


class StatusFiles:
    """Replaces its files whole. A full disk or a missing folder must not end the agent: each failure is logged once."""

    def __init__(self, state_dir: str, metrics_file: str | None) -> None:
        self._status = Path(state_dir) / "status.json"
        self._metrics = None if metrics_file is None else Path(metrics_file)
        self._failed: set[Path] = set()

    def write(self, status: Mapping[str, Any]) -> None:
        """Write both files; blocks as long as the disk does."""
        self._replace(self._status, json.dumps(status, indent=1) + "\n", None)
        if self._metrics is not None:
            self._replace(self._metrics, exposition(status), FOR_ALL)

    def _replace(self, path: Path, text: str, mode: int | None) -> None:
        """Replace a file, and log the first of failures in a row."""
        try:
            replace_file(path, text, mode, durable=False)  # it is renewed each second
        except OSError as error:
            if path not in self._failed:
                log.error(
                    "status.unwritable",
                    "check that its folder exists, is writable and has space",
                    file=path,
                    error=error,
                )
            self._failed.add(path)
        else:
            self._failed.discard(path)
