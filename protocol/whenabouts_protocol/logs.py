"""The log format of agent, ingest and jobs: the name of an event, fields as key=value, and a sentence for people.

    2026-11-23 14:00:01,123 WARNING reader.lost reader=dock port=/dev/ttyUSB0: opens it again

With `--log-format json`: one JSON object a line with time, level, logger, event, text and fields. Values from outside
cannot begin a line or imitate a field. For CPython only; boards print.
"""

import json
import logging
import sys
from datetime import UTC, datetime

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+:@%")


class Log:
    """A logger whose messages are events; `name` is the name of the module."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, event: str, text: str = "", /, **fields: object) -> None:
        """Log details for debugging."""
        self._write(logging.DEBUG, event, text, fields)

    def info(self, event: str, text: str = "", /, **fields: object) -> None:
        """Log a normal event."""
        self._write(logging.INFO, event, text, fields)

    def warning(self, event: str, text: str = "", /, **fields: object) -> None:
        """Log a fault that mends itself, or a loss that is counted."""
        self._write(logging.WARNING, event, text, fields)

    def error(self, event: str, text: str = "", /, **fields: object) -> None:
        """Log a fault that needs a person."""
        self._write(logging.ERROR, event, text, fields)

    def exception(self, event: str, text: str = "", /, **fields: object) -> None:
        """Log an error with the traceback of the exception being handled."""
        self._write(logging.ERROR, event, text, fields, traceback=True)

    def _write(self, level: int, event: str, text: str, fields: dict[str, object], traceback: bool = False) -> None:
        if self._logger.isEnabledFor(level):
            extra = {"event": event, "fields": fields}
            self._logger.log(level, "%s", text, extra=extra, exc_info=traceback, stacklevel=3)


class TextFormat(logging.Formatter):
    """One line for people; messages of other libraries appear under the name of their logger."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, followed by the traceback if there is one."""
        head = [self.formatTime(record), record.levelname, getattr(record, "event", record.name)]
        head += [f"{key}={_value(value)}" for key, value in getattr(record, "fields", {}).items()]
        text = _one_line(record.getMessage())
        line = " ".join(head) + (f": {text}" if text else "")
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormat(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """An object of time in UTC, level, logger, event, text, and the fields under their own names."""
        said: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": getattr(record, "event", ""),
            "text": record.getMessage(),
        }
        said.update(("field_" + key if key in said else key, v) for key, v in getattr(record, "fields", {}).items())
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        return json.dumps(said, default=str)


def write_logs(form: str = "text", level: str = "info") -> None:
    """Send the logs of this process to stderr in one of FORMATS, at one of LEVELS and above."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormat() if form == "json" else TextFormat())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _value(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if text and _PLAIN.issuperset(text) else json.dumps(text)


def _one_line(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)[1:-1]
