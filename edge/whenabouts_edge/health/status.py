"""Writes how the agent is into files that others read: its status, and metrics where they are wanted."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from whenabouts_edge.health.metrics import exposition
from whenabouts_protocol.logs import Log

FOR_ALL = 0o644

log = Log(__name__)


class Report:
    """Replaces its files whole. A disk that is full or a folder that is missing must not end the agent: it is told once."""

    def __init__(self, state_dir: str, metrics_file: str | None) -> None:
        self._status = Path(state_dir) / "status.json"
        self._metrics = None if metrics_file is None else Path(metrics_file)
        self._failed: set[Path] = set()

    def write(self, status: Mapping[str, Any]) -> None:
        """Write both; blocks for as long as the disk does."""
        self._replace(self._status, json.dumps(status, indent=1) + "\n", None)
        if self._metrics is not None:
            self._replace(self._metrics, exposition(status), FOR_ALL)

    def _replace(self, path: Path, text: str, mode: int | None) -> None:
        """A reader sees the old or the new file, never half of one."""
        temporary = path.with_suffix(".tmp")
        try:
            temporary.write_text(text, encoding="utf-8")
            if mode is not None:  # another program's user reads it, whatever this process's mask
                temporary.chmod(mode)
            temporary.replace(path)
        except OSError as error:
            if path not in self._failed:
                log.error(
                    "status.unwritable", "see that its folder is there, writable and has space", file=path, error=error
                )
            self._failed.add(path)
        else:
            self._failed.discard(path)
