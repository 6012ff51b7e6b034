"""The command `install` of whenabouts-edge: installs the agent as a service of systemd, or uninstalls it.

Exit codes: 0 done, 1 a step failed, 2 it cannot be installed in this way.
"""

import json
import os
import sys
from pathlib import Path

import click

from whenabouts_edge.install import plan
from whenabouts_edge.install.executor import StepError, carry_out, collect, needs, program
from whenabouts_edge.install.plan import CONFIG, UNIT, Action, InstallError, InstallRequest


@click.command()
@click.option(
    "--config",
    "config_file",
    default=CONFIG,
    show_default=True,
    envvar="WHENABOUTS_EDGE_CONFIG",
    show_envvar=True,
    help="TOML file of this gateway; an example is written if it is missing, and it is never overwritten.",
)
@click.option("--user", help="User of the agent; created if missing.  [default: whenabouts]")
@click.option("--dry-run", is_flag=True, help="Print the steps without doing them.")
@click.option("--uninstall", is_flag=True, help="Remove the installed files; configuration, spool and user stay.")
@click.option(
    "--purge",
    is_flag=True,
    help="With --uninstall: also remove configuration and spool, and the user if it was created here.",
)
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="Install into the system in this folder, such as a mounted image; paths are those inside it.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, for machines.")
def install(
    config_file: str, user: str | None, dry_run: bool, uninstall: bool, purge: bool, root: str | None, as_json: bool
) -> None:
    """Install the agent as a service that starts with the machine.

    Installs user, rule for serial ports, sample configuration, unit. Repeating it changes only what differs.

    \b
    Example:  sudo whenabouts-edge install --dry-run
              sudo whenabouts-edge install
              sudo whenabouts-edge install --uninstall
    """
    if purge and not uninstall:
        raise click.UsageError("--purge belongs to --uninstall")
    wanted = InstallRequest(program(), () if root else needs(), config_file, user, root, purge)
    facts = collect(config_file, root)
    try:
        actions = plan.uninstall(wanted, facts) if uninstall else plan.install(wanted, facts)
    except InstallError as error:
        if as_json:
            click.echo(json.dumps({"ok": False, "mistakes": error.mistakes, "actions": []}))
        for mistake in error.mistakes if not as_json else []:
            click.echo(mistake, err=True)
        sys.exit(2)
    done, problem = (0, "") if dry_run else _carry_out(actions, root, as_json)
    if as_json:
        reported = [{"verb": a.verb, "what": a.what, "why": a.why, "done": n < done} for n, a in enumerate(actions)]
        click.echo(json.dumps({"ok": not problem, "mistakes": [problem] if problem else [], "actions": reported}))
    elif dry_run:
        for action in actions:
            _report(action)
    if problem:
        sys.exit(1)
    if not as_json and not uninstall:
        _what_next(config_file, actions, dry_run)


def _carry_out(actions: list[Action], root: str | None, quiet: bool) -> tuple[int, str]:
    """(number of steps done, problem of the next one)."""
    if root is None and os.geteuid() != 0:
        problem = "install: found an ordinary user, expected root; run it with sudo, or preview it with --dry-run"
        click.echo(problem, err=True)
        return 0, problem
    for number, action in enumerate(actions):
        try:
            carry_out(action, root)
        except StepError as error:
            click.echo(str(error), err=True)
            return number, str(error)
        if not quiet:
            _report(action)
    return len(actions), ""


def _report(action: Action) -> None:
    click.echo(f"{action.verb:7} {action.what}  ({action.why})")


def _what_next(config_file: str, actions: list[Action], dry_run: bool) -> None:
    if dry_run:
        click.echo("nothing was done (--dry-run)", err=True)
    elif any(a.what.startswith(("systemctl start", "systemctl restart")) for a in actions):
        click.echo("now: whenabouts-edge doctor; whenabouts-edge status", err=True)
    else:
        service = Path(UNIT).name
        click.echo(f"now: edit {config_file}, then `whenabouts-edge doctor` and `systemctl start {service}`", err=True)
