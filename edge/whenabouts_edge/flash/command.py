"""The commands `provision` and `flash` of whenabouts-edge.

Exit codes: 0 done, 1 the board could not be flashed, 2 wrong usage or configuration.
"""

import hashlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import click

from whenabouts_edge.board.config import checked
from whenabouts_edge.config import ConfigError
from whenabouts_edge.flash import boards, modules, plan
from whenabouts_edge.flash.arrival import Arrival
from whenabouts_edge.flash.boards import BoardFacts
from whenabouts_edge.flash.compiler import compiled
from whenabouts_edge.flash.device import Device
from whenabouts_edge.flash.failure import FlashError
from whenabouts_edge.flash.provision import CA_PATH, Provisioned, provision
from whenabouts_edge.options import config_option, json_option

WAIT_S = 90

_board_option = click.option(
    "--board",
    "board_name",
    required=True,
    metavar="NAME",
    help=f"Kind of board: {', '.join(boards.known())}.",
)


@click.command("provision")
@config_option
@_board_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("board.json"),
    show_default=True,
    help="File to write; readable by you alone, as it holds passwords.",
)
@json_option
def provision_command(config_file: Path, board_name: str, out: Path, as_json: bool) -> None:
    """Make a board's configuration from the TOML file of an agent.

    Says which settings a board cannot have, all at once. Passwords come from WHENABOUTS_WIFI_PASSWORD and
    WHENABOUTS_BROKER_PASSWORD, else from the files that the configuration names, and are never shown.

    \b
    Example:  whenabouts-edge provision --config edge.toml --board pico_w --out board.json
    """
    made = _provisioned(config_file, _board(board_name, as_json), as_json)
    try:
        _write_secret(out, json.dumps(made.config, indent=2) + "\n")
    except OSError as error:
        _end(1, [f"{out}: cannot write ({error}); name another file with --out"], as_json)
    notes = [
        *made.notes,
        *(f"{name} must be on the board too: `flash` with this file copies it" for name in made.files),
    ]
    if as_json:
        click.echo(json.dumps({"ok": True, "out": str(out), "config": made.shown(), "notes": notes}))
        return
    for note in notes:
        click.echo(f"note: {note}", err=True)
    click.echo(f"{out}: {made.config['site']}/{made.config['gateway']} for {board_name}")


@click.command("flash")
@click.argument("port")
@_board_option
@config_option
@click.option("--dry-run", is_flag=True, help="Look at the board and say what would be done; it restarts, no more.")
@click.option("--no-wait", is_flag=True, help="Do not wait for the board's first beat at the broker.")
@click.option(
    "--wait-s", type=click.IntRange(1, 3600), default=WAIT_S, show_default=True, help="How long to wait for it."
)
@json_option
def flash_command(
    port: str, board_name: str, config_file: Path, dry_run: bool, no_wait: bool, wait_s: int, as_json: bool
) -> None:
    """Put the agent on the board at a serial port, and wait for its first beat.

    The board needs MicroPython on it. Copies only what differs, so after an interruption it goes on where it ended. The
    configuration is that of an agent, or the JSON that `provision` made. Needs the extra: pip install 'whenabouts[flash]'

    \b
    Example:  whenabouts-edge flash /dev/ttyACM0 --board pico_w --config edge.toml
    """
    board = _board(board_name, as_json)
    made = _read(config_file, board, as_json)
    for note in made.notes if not as_json else ():
        click.echo(f"note: {note}", err=True)
    job = _Job(port, board, made, None if no_wait else wait_s, lambda line: click.echo(line, err=True))
    try:
        told = job.dry_run() if dry_run else job.flash()
    except FlashError as error:
        _end(1, [str(error)], as_json)
    if as_json:
        click.echo(json.dumps({"ok": True, **told}))
    elif dry_run:
        for step in told["steps"]:
            if step["verb"] != "keep":
                click.echo(f"{step['verb']:7} {step['path']}" + (f"  {step['bytes']} bytes" if step["bytes"] else ""))
        click.echo(f"nothing was changed (--dry-run); {told['kept']} files are there already", err=True)
    else:
        click.echo(_summary(port, made.config, told))


@dataclass(frozen=True, slots=True)
class _Job:
    port: str
    board: BoardFacts
    made: Provisioned
    wait_s: int | None
    say: Callable[[str], None]

    def dry_run(self) -> dict[str, Any]:
        files, config = self._files()
        device, what = self._looked(files)
        device.restart()
        return self._told(what, config)

    def flash(self) -> dict[str, Any]:
        files, config = self._files()
        if self.wait_s is None:
            device, what = self._written(files)
            device.restart()
            return self._told(what, config)
        with Arrival(config, self.made.files.get(CA_PATH)) as arrival:
            device, what = self._written(files)
            before = arrival.before()
            device.restart()
            self.say("wait    for the first beat")
            arrived = arrival.wait(self.port, before, self.wait_s)
        beat = {"boot": arrived.beat.boot, "after_s": round(arrived.after_s, 1), "clock": arrived.beat.clock_state}
        return {**self._told(what, config), "beat": beat}

    def _files(self) -> tuple[list[plan.File], dict[str, Any]]:
        """What the board should hold, and its configuration with the build that names just these modules."""
        kinds = [reader["kind"] for reader in self.made.config["readers"]]
        needed = modules.needed(self.board.modules, kinds, self.made.config)
        self.say(f"compile {len(needed)} modules")
        code = {
            modules.place(name, path): compiled(path, modules.place(name, path, ".py")) for name, path in needed.items()
        }
        digest = hashlib.sha256(b"".join(name.encode() + code[name] for name in sorted(code))).hexdigest()
        config = {**self.made.config, "build": f"{self.made.config.get('build', 'whenabouts')} {digest[:12]}"}
        return plan.contents(code, json.dumps(config, sort_keys=True).encode(), self.made.files), config

    def _looked(self, files: list[plan.File]) -> tuple[Device, plan.Plan]:
        device = Device(self.port, self.say)
        self.say(f"look    at the board on {self.port}")
        seen = device.look()
        what = plan.plan(files, seen)
        try:
            plan.refuse(self.board, self.port, seen)
            plan.refuse_full(self.board, files, what, seen)
        except FlashError:
            device.restart()  # looking interrupted what ran
            raise
        return device, what

    def _written(self, files: list[plan.File]) -> tuple[Device, plan.Plan]:
        device, what = self._looked(files)
        if what.is_empty:
            self.say("keep    everything: the board holds all of it")
            return device, what
        if what.detach:
            self.say("restart the board without its main program, so that no watchdog interrupts")
            device.detach()
        removed = [step.path for step in what.of("remove")]
        for path in removed:
            self.say(f"remove  {path}")
        device.remove(removed)
        device.make_folders([step.path for step in what.of("folder")])
        *others, main = files
        copied = {step.path for step in what.of("copy")}
        device.copy([(file.path, file.data) for file in others if file.path in copied])
        self.say("verify  every hash on the board")
        _refuse_differing(plan.differing(others, device.look()))
        device.copy([(main.path, main.data)])
        _refuse_differing(plan.differing(files, device.look()))
        return device, what

    def _told(self, what: plan.Plan, config: dict[str, Any]) -> dict[str, Any]:
        steps = [{"verb": step.verb, "path": step.path, "bytes": step.bytes} for step in what.steps]
        copied = what.of("copy")
        return {
            "port": self.port,
            "board": self.board.name,
            "build": config["build"],
            "kept": len(what.of("keep")),
            "copied": len(copied),
            "copied_bytes": sum(step.bytes for step in copied),
            "steps": steps,
        }


def _refuse_differing(faults: list[str]) -> None:
    if faults:
        more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
        raise FlashError(
            f"{faults[0]}{more}; run it again, it copies what differs; if that stays so the flash or the cable is bad"
        )


def _summary(port: str, config: dict[str, Any], told: dict[str, Any]) -> str:
    gateway = f"{config['site']}/{config['gateway']}"
    text = f"{port}: {gateway} is on the board, {told['copied']} files copied, {told['kept']} were there"
    if "beat" in told:
        text += f"; first beat {told['beat']['after_s']} s after the restart, clock {told['beat']['clock']}"
    return text


def _board(name: str, as_json: bool) -> BoardFacts:
    try:
        return boards.board(name)
    except boards.UnknownBoard as error:
        _end(2, [str(error)], as_json)


def _read(path: Path, board: BoardFacts, as_json: bool) -> Provisioned:
    """From TOML, or from JSON that was provisioned before."""
    if path.suffix != ".json":
        return _provisioned(path, board, as_json)
    try:
        config = checked(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        _end(2, [f"{path}: {error}; make it with `whenabouts-edge provision`"], as_json)
    if "ca_file" in config["broker"] or "file" in config.get("rules", {}):
        found = "found names of other files, expected the configuration that leads to them"
        _end(2, [f"{path}: {found}; flash with the TOML file that it was made from"], as_json)
    return Provisioned(config)


def _provisioned(path: Path, board: BoardFacts, as_json: bool) -> Provisioned:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        _end(2, [f"{path}: cannot read ({error}); make one with `whenabouts-edge sample-config`"], as_json)
    try:
        return provision(text, board, os.environ, lambda name: Path(name).read_bytes(), str(path))
    except ConfigError as error:
        _end(2, error.mistakes, as_json)


def _write_secret(path: Path, text: str) -> None:
    """A new file in place of what was there, readable by this user alone from its first moment on."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(path)


def _end(code: int, mistakes: list[str], as_json: bool) -> NoReturn:
    if as_json:
        click.echo(json.dumps({"ok": False, "mistakes": mistakes}))
    else:
        for mistake in mistakes:
            click.echo(mistake, err=True)
    sys.exit(code)
