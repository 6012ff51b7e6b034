"""Carries out a plan of installing, and collects the facts for it."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from whenabouts_edge.config import load as configuration
from whenabouts_edge.config.settings import Config
from whenabouts_edge.install.files import PORT_GROUP
from whenabouts_edge.install.plan import USER, WRITTEN, Action, Facts
from whenabouts_edge.replace_file import replace_file

RUNNING_SYSTEMD = Path("/run/systemd/system")
COMMAND_TIMEOUT_S = 120.0


class StepError(Exception):
    """A step failed; the text names the step, what was found and what to do. The steps before it are done."""


def collect(config_file: str, root: str | None) -> Facts:
    """The facts for a plan, about this system or the one in root."""
    files = {}
    for path in (*WRITTEN, config_file):
        with contextlib.suppress(OSError, UnicodeError):
            files[path] = _inside(root, path).read_text(encoding="utf-8")
    config = _config(files.get(config_file))
    state_dir = config.state_dir if config else f"/var/lib/{USER}"
    users = _table(_inside(root, "/etc/passwd"))
    groups = _table(_inside(root, "/etc/group"))
    members = frozenset(filter(None, groups.get(PORT_GROUP, ["", "", ""])[2].split(",")))
    return Facts(
        files=files,
        config=config,
        users={name: fields[3] for name, fields in users.items() if len(fields) > 3},
        members=members,
        state_there=_inside(root, state_dir).is_dir(),
        live=root is None and RUNNING_SYSTEMD.is_dir(),
    )


def program() -> tuple[str, ...]:
    """The command that starts this program from any folder."""
    script = Path(sys.argv[0])
    if script.name == "whenabouts-edge" and script.exists():
        return (str(script.absolute()),)
    return (sys.executable, "-m", "whenabouts_edge.cli")


def needs() -> tuple[str, ...]:
    """The interpreter behind the links of a virtual environment, and the folder of these modules."""
    return os.path.realpath(sys.executable), str(Path(__file__).resolve().parents[1])


def carry_out(action: Action, root: str | None) -> None:
    """Do one step.

    Raises:
        StepError: it failed.
    """
    try:
        if action.verb == "write":
            _write(_inside(root, action.what), action.text)
        elif action.verb == "remove":
            _remove(_inside(root, action.what))
        elif action.verb == "clear":
            _clear(_inside(root, action.what), action.patterns)
        elif action.verb == "run":
            _run(action.command)
    except OSError as error:
        advice = "run it with sudo" if isinstance(error, PermissionError) else "see the system's message"
        raise StepError(f"{action.verb} {action.what}: {error}; {advice}") from error


def _inside(root: str | None, path: str) -> Path:
    return Path(root) / path.lstrip("/") if root else Path(path)


def _config(text: str | None) -> Config | None:
    if text is None:
        return None
    try:
        return configuration.parse(text)
    except configuration.ConfigError:
        return None


def _table(path: Path) -> dict[str, list[str]]:
    """The other fields by name of /etc/passwd or /etc/group."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    rows = [line.split(":") for line in lines if line.count(":") >= 3]
    return {row[0]: row[1:] for row in rows}


def _write(path: Path, text: str) -> None:
    """Replace a file; readable by all, as it holds no secret."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    replace_file(path, text, 0o644, durable=True)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # it has other files, or is gone
        if path.parent.name == "whenabouts":
            path.parent.rmdir()


def _clear(folder: Path, patterns: Sequence[str]) -> None:
    for pattern in patterns:
        for path in folder.glob(pattern):
            path.unlink()
    with contextlib.suppress(OSError):  # it has other files
        folder.rmdir()


def _run(command: Sequence[str]) -> None:
    path = shutil.which(command[0], path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if path is None:
        raise StepError(
            f"run {' '.join(command)}: found no program {command[0]}, expected systemd's tools; install systemd"
        )
    try:
        done = subprocess.run(
            [path, *command[1:]],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise StepError(
            f"run {' '.join(command)}: no end within {COMMAND_TIMEOUT_S:.0f} s; see `journalctl -xe`"
        ) from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise StepError(
            f"run {' '.join(command)}: exit code {done.returncode}, expected 0: {said[-1] if said else 'no output'}"
        )
