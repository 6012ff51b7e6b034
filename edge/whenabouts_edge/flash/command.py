"""The commands `provision` and `flash` of whenabouts-edge.

Exit codes: 0 done, 1 the board could not be flashed, 2 wrong usage or configuration.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from whenabouts_edge.board.config import checked
from whenabouts_edge.config.load import ConfigError, read
from whenabouts_edge.config.options import config_option, json_option
from whenabouts_edge.flash import FlashError, boards
from whenabouts_edge.flash.boards import BoardFacts
from whenabouts_edge.flash.job import Job
from whenabouts_edge.flash.provision import Provisioned, provision
from whenabouts_edge.replace_file import replace_file

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
    help="File to write; readable only by you, as it holds passwords.",
)
@json_option
def provision_command(config_file: Path, board_name: str, out: Path, as_json: bool) -> None:
    """Make a board's configuration from the TOML file of an agent.

    Reports all settings that a board cannot have. Passwords come from WHENABOUTS_WIFI_PASSWORD and
    WHENABOUTS_BROKER_PASSWORD, else from the files named in the configuration, and are never shown.

    \b
    Example:  whenabouts-edge provision --config edge.toml --board pico_w --out board.json
    """
    made = _provisioned(config_file, _board(board_name, as_json), as_json)
    try:
        replace_file(out, json.dumps(made.config, indent=2) + "\n", 0o600, durable=True)  # it holds passwords
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
@click.option("--dry-run", is_flag=True, help="Inspect the board and print the steps; it is only restarted.")
@click.option("--no-wait", is_flag=True, help="Do not wait for the board's first heartbeat at the broker.")
@click.option(
    "--wait-s", type=click.IntRange(1, 3600), default=WAIT_S, show_default=True, help="How long to wait for it."
)
@json_option
def flash_command(
    port: str, board_name: str, config_file: Path, dry_run: bool, no_wait: bool, wait_s: int, as_json: bool
) -> None:
    """Put the agent on the board at a serial port, and wait for its first heartbeat.

    The board needs MicroPython. Copies only files that differ, so after an interruption it continues where it stopped. The
    configuration is that of an agent, or the JSON from `provision`. Needs the extra: pip install 'whenabouts[flash]'

    \b
    Example:  whenabouts-edge flash /dev/ttyACM0 --board pico_w --config edge.toml
    """
    board = _board(board_name, as_json)
    made = _read(config_file, board, as_json)
    for note in made.notes if not as_json else ():
        click.echo(f"note: {note}", err=True)
    job = Job(port, board, made, None if no_wait else wait_s, lambda line: click.echo(line, err=True))
    try:
        reported = job.dry_run() if dry_run else job.flash()
    except FlashError as error:
        _end(1, [str(error)], as_json)
    if as_json:
        click.echo(json.dumps({"ok": True, **reported}))
    elif dry_run:
        for step in reported["steps"]:
            if step["verb"] != "keep":
                click.echo(f"{step['verb']:7} {step['path']}" + (f"  {step['bytes']} bytes" if step["bytes"] else ""))
        click.echo(f"nothing was changed (--dry-run); {reported['kept']} files are already there", err=True)
    else:
        click.echo(_summary(port, made.config, reported))


def _summary(port: str, config: dict[str, Any], reported: dict[str, Any]) -> str:
    gateway = f"{config['site']}/{config['gateway']}"
    text = f"{port}: {gateway} is on the board, {reported['copied']} files copied, {reported['kept']} were there"
    if "heartbeat" in reported:
        first = reported["heartbeat"]
        text += f"; first heartbeat {first['after_s']} s after the restart, clock {first['clock']}"
    return text


def _board(name: str, as_json: bool) -> BoardFacts:
    try:
        return boards.board(name)
    except boards.UnknownBoard as error:
        _end(2, [str(error)], as_json)


def _read(path: Path, board: BoardFacts, as_json: bool) -> Provisioned:
    """Read a configuration from TOML, or from the JSON of an earlier `provision`."""
    if path.suffix != ".json":
        return _provisioned(path, board, as_json)
    try:
        config = checked(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        _end(2, [f"{path}: {error}; make it with `whenabouts-edge provision`"], as_json)
    if "ca_file" in config["broker"] or "file" in config.get("rules", {}):
        problem = "found names of other files, expected the configuration that names them"
        _end(2, [f"{path}: {problem}; flash with the TOML file that it was made from"], as_json)
    return Provisioned(config)


def _provisioned(path: Path, board: BoardFacts, as_json: bool) -> Provisioned:
    try:
        return provision(read(path), board, os.environ, lambda name: Path(name).read_bytes(), str(path))
    except ConfigError as error:
        _end(2, error.mistakes, as_json)


def _end(code: int, mistakes: list[str], as_json: bool) -> NoReturn:
    if as_json:
        click.echo(json.dumps({"ok": False, "mistakes": mistakes}))
    else:
        for mistake in mistakes:
            click.echo(mistake, err=True)
    sys.exit(code)
