"""Plans of installing and uninstalling: lists of actions with a reason each; pure.

A plan depends on the current state: correct files are kept, so that installing twice changes nothing. The configuration
belongs to its owner: it is written if missing, never changed, and removed only by purging.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from whenabouts_edge.config.settings import Config
from whenabouts_edge.config.settings import sample as sample_text
from whenabouts_edge.install.files import (
    MARK,
    PORT_GROUP,
    UNIT_NAME,
    USER_COMMENT,
    made_user,
    state_directory,
    sysusers,
    tmpfiles,
    udev_rule,
    unit,
    user_of,
)

UNIT = f"/etc/systemd/system/{UNIT_NAME}"
RULE = "/etc/udev/rules.d/70-whenabouts.rules"
SYSUSERS = "/etc/sysusers.d/whenabouts.conf"
TMPFILES = "/etc/tmpfiles.d/whenabouts.conf"
WRITTEN = (SYSUSERS, TMPFILES, RULE, UNIT)
USER = "whenabouts"
CONFIG = "/etc/whenabouts/edge.toml"
STATE_FILES = ("spool.sqlite*", "status.json", ".status.json.new")  # files of the agent in state_dir

_HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")  # hidden from the service by ProtectHome and PrivateTmp
_USER_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,30}")


class InstallError(Exception):
    """It cannot be installed in this way; `mistakes` holds one line for each reason."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


@dataclass(frozen=True, slots=True)
class Action:
    """One step. verb: keep, write, remove, clear (files of a folder by pattern, then the folder if empty) or run."""

    verb: str
    what: str
    why: str
    text: str = ""
    patterns: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InstallRequest:
    """The requested installation. command: the words that start this program; needs: files required for the start;
    root: a folder that holds another system.
    """

    command: tuple[str, ...]
    needs: tuple[str, ...] = ()
    config_file: str = CONFIG
    user: str | None = None
    root: str | None = None
    purge: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """The current state. files: content by path of the existing ones of WRITTEN and the configuration.

    config: the configuration if it has no mistakes. users: comment by name. members: users of the group of serial
    ports. live: True if a running systemd manages this very system.
    """

    files: Mapping[str, str]
    config: Config | None
    users: Mapping[str, str]
    members: frozenset[str]
    state_there: bool
    live: bool


def install(wanted: InstallRequest, facts: Facts) -> list[Action]:
    """The steps that install the agent as a service.

    Raises:
        InstallError: the configuration has mistakes, the service could not see its program or files, or the user's name
        is invalid.
    """
    user = wanted.user or _installed_user(facts) or USER
    state_dir = facts.config.state_dir if facts.config else f"/var/lib/{USER}"
    _refuse(wanted, facts, user, state_dir)
    make_user = user not in facts.users or user == made_user(facts.files.get(SYSUSERS, ""))
    managed = state_directory(state_dir) is not None
    actions = [_written(facts, SYSUSERS, sysusers(user, make_user), f"user {user}, in group {PORT_GROUP}")]
    if user not in facts.users or user not in facts.members:
        actions.append(_run(wanted, ("systemd-sysusers",), _name(SYSUSERS), why="creates the user and its membership"))
    if not managed:
        text = tmpfiles(user, state_dir)
        actions.append(_written(facts, TMPFILES, text, f"folder {state_dir} for spool and status"))
        if actions[-1].verb == "write" or not facts.state_there:
            actions.append(_run(wanted, ("systemd-tmpfiles",), "--create", _name(TMPFILES), why="creates that folder"))
    elif TMPFILES in facts.files:
        actions.append(Action("remove", TMPFILES, "the unit creates the folder for spool and status"))
    ports = [reader.port for reader in facts.config.readers] if facts.config else []
    why = f"ports by id; those of the configured readers for group {PORT_GROUP}, without ModemManager"
    rule = _written(facts, RULE, udev_rule(ports if _is_edited(facts) else []), why)
    actions.append(rule)
    if rule.verb == "write" and facts.live:
        actions += _reload_udev()
    actions.append(_config(wanted, facts))
    command = (*wanted.command, "run", "--config", wanted.config_file)
    service = _written(facts, UNIT, unit(command, user, state_dir, ports, _writes(facts.config)), "runs the agent")
    actions.append(service)
    if service.verb == "write" and facts.live:
        actions.append(_run(wanted, ("systemctl",), "daemon-reload", why="the unit is new"))
    actions.append(_run(wanted, ("systemctl",), "enable", UNIT_NAME, why="starts it with the machine"))
    actions += _start(facts, service.verb == "write")
    return actions


def uninstall(wanted: InstallRequest, facts: Facts) -> list[Action]:
    """The steps that remove what `install` made; configuration, spool and user stay unless they are to be purged.

    Raises:
        InstallError: spool and user are to be purged, and mistakes in the configuration hide the place of the spool.
    """
    if wanted.purge and facts.config is None and wanted.config_file in facts.files:
        path = wanted.config_file
        raise InstallError(
            [
                f"config: found mistakes in {path}, expected none: it has the path of the spool; correct or remove it first"
            ]
        )
    installed = facts.files.get(UNIT, "").startswith(MARK)
    actions = []
    if installed:
        now = ("--now",) if facts.live else ()
        actions.append(_run(wanted, ("systemctl",), "disable", *now, UNIT_NAME, why="ends it, also at the next start"))
    made = made_user(facts.files.get(SYSUSERS, ""))
    user = _user(wanted, facts, made) if made is not None and made in facts.users else []
    reported = {action.what for action in user}
    actions += [_removed(facts, path) for path in reversed(WRITTEN) if path in facts.files and path not in reported]
    if facts.config and facts.config.metrics_file and installed:
        actions.append(Action("remove", facts.config.metrics_file, "would show old figures forever"))
    if facts.live and installed:
        actions.append(_run(wanted, ("systemctl",), "daemon-reload", why="the unit is gone"))
    if facts.live and RULE in facts.files:
        actions += _reload_udev()
    return [*actions, *_data(wanted, facts), *user]


def _removed(facts: Facts, path: str) -> Action:
    if facts.files[path].startswith(MARK):
        return Action("remove", path, "was installed")
    return Action("keep", path, "was not written by `install`")


def _data(wanted: InstallRequest, facts: Facts) -> Iterator[Action]:
    """The actions for configuration and spool."""
    state_dir = facts.config.state_dir if facts.config else f"/var/lib/{USER}"
    if wanted.config_file in facts.files:
        verb, why = ("remove", "purged") if wanted.purge else ("keep", "yours; --purge removes it")
        yield Action(verb, wanted.config_file, why)
    if facts.state_there and wanted.purge:
        yield Action("clear", state_dir, "purged: spool and status", patterns=STATE_FILES)
    elif facts.state_there:
        yield Action("keep", state_dir, "may hold readings that have not landed; --purge removes them")


def _user(wanted: InstallRequest, facts: Facts, made: str) -> list[Action]:
    """The actions for the user that was created here, and for the file that records it: last, so that a repeat knows it
    too.
    """
    if not wanted.purge:
        return [
            Action("keep", f"user {made}", "was created for the agent; --purge removes it"),
            Action("keep", SYSUSERS, f"records that {made} was created for the agent; --purge removes it"),
        ]
    if facts.users[made] != USER_COMMENT or wanted.user not in (None, made):
        why = "differs from the user created for the agent, or another one was named"
        return [Action("keep", f"user {made}", why), _removed(facts, SYSUSERS)]
    command = ("userdel", *(("--prefix", wanted.root) if wanted.root else ()), made)
    return [Action("run", _line(*command), "was created for the agent", command=command), _removed(facts, SYSUSERS)]


def _refuse(wanted: InstallRequest, facts: Facts, user: str, state_dir: str) -> None:
    mistakes = []
    if facts.config is None and wanted.config_file in facts.files:
        path = wanted.config_file
        mistakes.append(f"config: found mistakes in {path}, expected none; see `whenabouts-edge check --config {path}`")
    if not _USER_NAME.fullmatch(user):
        mistakes.append(f"user: found {user!r}, expected small letters, digits, _ and -, beginning with a letter or _")
    elif user == "root":
        mistakes.append("user: found root, expected one with fewer rights; leave out --user to have one created")
    mistakes += [
        f"program: found {path}, which the service cannot see; expected a place outside {', '.join(_HIDDEN)}; "
        "make one with `sudo /usr/bin/python3 -m venv /opt/whenabouts` and install it there"
        for path in dict.fromkeys((wanted.command[0], *wanted.needs))
        if _is_hidden(path)
    ]
    seen = {"config": wanted.config_file, "state_dir": state_dir}
    if facts.config:
        broker = facts.config.broker
        seen |= {key: getattr(broker, key) or "" for key in ("password_file", "ca_file", "cert_file", "key_file")}
        seen["rules_file"] = facts.config.rules_file or ""
    for key, path in seen.items():
        if path and not path.startswith("/"):
            mistakes.append(f"{key}: found {path}, expected a path that begins with /: a service has no current folder")
        elif _is_hidden(path):
            mistakes.append(
                f"{key}: found {path}, which the service cannot see; expected one outside {', '.join(_HIDDEN)}"
            )
        elif any(c in path for c in '\n\r"'):
            mistakes.append(f"{key}: found {path!r}, expected a path without quotes and line ends")
    if mistakes:
        raise InstallError(mistakes)


def _is_hidden(path: str) -> bool:
    return any(PurePosixPath(path).is_relative_to(folder) for folder in _HIDDEN)


def _installed_user(facts: Facts) -> str | None:
    return user_of(facts.files.get(UNIT, ""))


def _writes(config: Config | None) -> list[str]:
    """Folders besides state_dir that the agent writes to."""
    metrics_file = config.metrics_file if config else None
    if config is None or metrics_file is None:
        return []
    folder = str(PurePosixPath(metrics_file).parent)
    return [] if PurePosixPath(folder).is_relative_to(config.state_dir) else [folder]


def _written(facts: Facts, path: str, text: str, why: str) -> Action:
    if facts.files.get(path) == text:
        return Action("keep", path, f"is up to date: {why}")
    return Action("write", path, why, text=text)


def _config(wanted: InstallRequest, facts: Facts) -> Action:
    path = wanted.config_file
    if path not in facts.files:
        return Action("write", path, "a configuration to edit: site, gateway, broker and readers", text=sample_text())
    if facts.files[path] == sample_text():
        return Action("keep", path, "still the example; edit site, gateway, broker and readers")
    return Action("keep", path, "yours")


def _is_edited(facts: Facts) -> bool:
    """True if there is a configuration, and not just the example."""
    return facts.config is not None and sample_text() not in facts.files.values()


def _start(facts: Facts, unit_changed: bool) -> Iterator[Action]:
    """Start the service only with a configuration that somebody has edited."""
    if facts.live and _is_edited(facts):
        verb, why = (
            ("restart", "runs the new version") if unit_changed else ("start", "runs it, if it does not run yet")
        )
        yield Action("run", _line("systemctl", verb, UNIT_NAME), why, command=("systemctl", verb, UNIT_NAME))


def _reload_udev() -> list[Action]:
    reload, trigger = ("udevadm", "control", "--reload"), ("udevadm", "trigger", "--subsystem-match=tty")
    return [
        Action("run", _line(*reload), "the rules have changed", command=reload),
        Action("run", _line(*trigger), "for ports that are plugged in", command=trigger),
    ]


def _run(wanted: InstallRequest, program: tuple[str, ...], *words: str, why: str) -> Action:
    """A command of systemd, for the other system if there is one."""
    command = (*program, *((f"--root={wanted.root}",) if wanted.root else ()), *words)
    return Action("run", _line(*command), why, command=command)


def _name(path: str) -> str:
    """The file name for systemd's tools: with a full path they would look for it outside the root."""
    return PurePosixPath(path).name


def _line(*words: str) -> str:
    return " ".join(words)
