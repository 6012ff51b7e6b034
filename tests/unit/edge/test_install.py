"""Installing as a service: the plan as a value, the files it makes by the tools that read them, and doing it in a folder."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from click.testing import CliRunner

from support.edge.config import FINE
from whenabouts_edge.config.load import parse
from whenabouts_edge.config.settings import sample
from whenabouts_edge.install import command as command_module
from whenabouts_edge.install.command import install as command
from whenabouts_edge.install.executor import StepError, carry_out, collect
from whenabouts_edge.install.files import state_directory, udev_rule, unit, user_of
from whenabouts_edge.install.plan import (
    CONFIG,
    RULE,
    SYSUSERS,
    TMPFILES,
    UNIT,
    Facts,
    InstallError,
    InstallRequest,
    install,
    uninstall,
)

EXPOSURE_MAX = 2.5
PROGRAM = InstallRequest(("/opt/whenabouts/bin/whenabouts-edge",))
PURGING = replace(PROGRAM, purge=True)
NOTHING = Facts({}, None, {"pi": "Raspberry"}, frozenset(), False, True)


def done(facts: Facts, wanted: InstallRequest = PROGRAM) -> Facts:
    """The state after the plan was carried out."""
    files = dict(facts.files)
    users, members = dict(facts.users), set(facts.members)
    for action in install(wanted, facts):
        if action.verb == "write":
            files[action.what] = action.text
        elif action.verb == "remove":
            del files[action.what]
        elif "systemd-sysusers" in action.command:
            for line in files[SYSUSERS].splitlines():
                if line.startswith("u "):
                    users.setdefault(line.split()[1], line.split('"')[1])
                elif line.startswith("m "):
                    members.add(line.split()[1])
    return replace(facts, files=files, users=users, members=frozenset(members), config=parse(files[CONFIG]))


def edited(text: str = FINE, **changes) -> Facts:
    return replace(NOTHING, files={CONFIG: text}, config=parse(text), **changes)


def steps(actions) -> list[tuple[str, str]]:
    return [(a.verb, a.what) for a in actions]


def test_a_new_gateway_gets_user_rule_example_and_unit_but_is_not_started():
    """The example names no real reader: starting waits for its owner. Every step gives its reason."""
    actions = install(PROGRAM, NOTHING)
    assert steps(actions) == [
        ("write", SYSUSERS), ("run", "systemd-sysusers whenabouts.conf"),
        ("write", RULE), ("run", "udevadm control --reload"), ("run", "udevadm trigger --subsystem-match=tty"),
        ("write", CONFIG), ("write", UNIT), ("run", "systemctl daemon-reload"),
        ("run", "systemctl enable whenabouts-edge.service"),
    ]  # fmt: skip
    assert all(action.why for action in actions)


def test_installing_again_changes_nothing():
    """With the example, and with a configuration of one's own; what is left to do is harmless to repeat."""
    after = done(NOTHING)
    assert steps(install(PROGRAM, after)) == [
        ("keep", SYSUSERS), ("keep", RULE), ("keep", CONFIG), ("keep", UNIT),
        ("run", "systemctl enable whenabouts-edge.service"),
    ]  # fmt: skip
    mine = done(edited())
    assert done(mine) == mine
    assert steps(install(PROGRAM, mine))[-1] == ("run", "systemctl start whenabouts-edge.service")


@pytest.mark.parametrize("text", [FINE, FINE + "# mine\n", sample() + "# mine\n"])
def test_a_configuration_that_is_there_is_never_written(text):
    """Neither by installing nor by uninstalling; purging takes it."""
    facts = edited(text)
    after = done(facts)
    assert after.files[CONFIG] == text
    of_config = [a.verb for a in [*install(PROGRAM, facts), *uninstall(PROGRAM, after)] if a.what == CONFIG]
    assert of_config == ["keep", "keep"]
    assert ("remove", CONFIG) in steps(uninstall(PURGING, after))


def test_a_configuration_with_mistakes_is_not_installed():
    """The unit depends on its value: a typing error must not move the spool."""
    with pytest.raises(InstallError, match="config: found mistakes in /etc/whenabouts/edge"):
        install(PROGRAM, replace(NOTHING, files={CONFIG: FINE + "oops = 1"}))


def test_a_changed_unit_restarts_the_agent():
    """Only then: a restart is a gap in the readings."""
    old = done(edited())
    moved = edited('state_dir = "/data/whenabouts"\n' + FINE)
    after = replace(moved, files={**old.files, **moved.files}, users=old.users, members=old.members)
    actions = install(PROGRAM, after)
    assert ("write", UNIT) in steps(actions)
    assert steps(actions)[-1] == ("run", "systemctl restart whenabouts-edge.service")


def test_uninstalling_takes_what_was_installed_and_leaves_spool_and_its_owner():
    """Readings that have not landed are worth more than a tidy disk."""
    after = replace(done(edited()), state_there=True)
    assert steps(uninstall(PROGRAM, after)) == [
        ("run", "systemctl disable --now whenabouts-edge.service"),
        ("remove", UNIT), ("remove", RULE),
        ("run", "systemctl daemon-reload"),
        ("run", "udevadm control --reload"), ("run", "udevadm trigger --subsystem-match=tty"),
        ("keep", CONFIG), ("keep", "/var/lib/whenabouts"), ("keep", "user whenabouts"), ("keep", SYSUSERS),
    ]  # fmt: skip
    purged = steps(uninstall(PURGING, after))
    assert purged[-4:] == [
        ("remove", CONFIG), ("clear", "/var/lib/whenabouts"), ("run", "userdel whenabouts"), ("remove", SYSUSERS),
    ]  # fmt: skip
    assert uninstall(PROGRAM, NOTHING) == []


def test_a_user_that_was_there_before_is_used_and_never_removed():
    """It joins the group of serial ports; the next install and uninstall remember it from the unit."""
    wanted = replace(PROGRAM, user="pi")
    after = done(edited(), wanted)
    assert after.files[SYSUSERS].splitlines()[1:] == ["m pi dialout"]
    assert user_of(after.files[UNIT]) == "pi"
    assert done(after) == after
    assert not [a for a in uninstall(PURGING, after) if "userdel" in a.what]


def removes_user(wanted: InstallRequest, facts: Facts) -> bool:
    return any("userdel" in action.what for action in uninstall(wanted, facts))


def test_only_purging_removes_a_user_and_only_one_that_was_made_here():
    """With any comment, with the spool at any place, and also when purging comes after uninstalling."""
    made = done(edited())
    assert removes_user(PURGING, made)
    moved = edited('state_dir = "/data/whenabouts"\n' + FINE, users=made.users)
    for facts in (made, replace(moved, files={**made.files, **moved.files}), replace(made, config=None)):
        assert not removes_user(PROGRAM, facts)
    gone = {a.what for a in uninstall(PROGRAM, made) if a.verb == "remove"}
    assert removes_user(PURGING, replace(made, files={p: t for p, t in made.files.items() if p not in gone}))

    installed = done(edited(users={"whenabouts": "Whenabouts agent"}))  # by whoever made it, with the very comment
    assert installed.files[SYSUSERS].splitlines()[1:] == ["m whenabouts dialout"]
    for facts in (installed, replace(installed, files={}), replace(made, users={"whenabouts": "Somebody"})):
        assert not removes_user(PURGING, facts)
    assert not removes_user(replace(PURGING, user="pi"), made)


def test_files_of_others_stay():
    """A rule and a unit of the same name that somebody wrote; a spool whose place cannot be known."""
    theirs = replace(NOTHING, files={RULE: 'KERNEL=="ttyUSB0"\n', UNIT: "[Service]\n"})
    assert steps(uninstall(PURGING, theirs))[:2] == [("keep", UNIT), ("keep", RULE)]
    with pytest.raises(InstallError, match="config: found mistakes in /etc/whenabouts/edge"):
        uninstall(PURGING, replace(done(edited()), config=None))


@pytest.mark.parametrize(
    ("wanted", "config", "problem"),
    [
        (replace(PROGRAM, user="root"), FINE, "user: found root"),
        (replace(PROGRAM, user="A b"), FINE, "user: found 'A b'"),
        (replace(PROGRAM, user="x\nExecStart=/bin/sh"), FINE, "user: found"),
        (replace(PROGRAM, command=("/home/pi/venv/bin/whenabouts-edge",)), FINE, "program: found /home/pi/venv"),
        (replace(PROGRAM, needs=("/run/user/0/python3",)), FINE, "program: found /run/user/0"),
        (replace(PROGRAM, config_file="edge.toml"), FINE, "config: found edge.toml, expected a path that begins"),
        (PROGRAM, 'state_dir = "/home/pi/state"\n' + FINE, "state_dir: found /home/pi/state, which the service cannot"),
        (PROGRAM, 'state_dir = "state"\n' + FINE, "state_dir: found state, expected a path that begins with /"),
        (PROGRAM, FINE + '[broker]\nusername = "u"\npassword_file = "/var/tmp/secret"\n', "password_file: found /var/tmp"),
        (PROGRAM, 'state_dir = "/data/a\\"User=root"\n' + FINE, "state_dir: found '/data/a"),
    ],
)  # fmt: skip
def test_what_the_service_could_not_see_is_refused_with_a_reason(wanted, config, problem):
    """Homes are hidden from it; a path cannot smuggle lines into the unit. All mistakes at once."""
    with pytest.raises(InstallError) as caught:
        install(wanted, edited(config))
    assert [text for text in caught.value.mistakes if text.startswith(problem)]
    assert len(caught.value.mistakes) == 1


def test_the_unit_lets_the_agent_reach_what_its_configuration_names():
    """A configured folder, an unusual port, the folder of the metrics; a percent sign stays one."""
    config = (
        'state_dir = "/data/100% dock"\nmetrics_file = "/var/lib/node/whenabouts.prom"\n'
        + FINE.replace("/dev/ttyUSB0", "/dev/rfcomm0")
    )  # fmt: skip
    after = done(edited(config))
    lines = after.files[UNIT].splitlines()
    assert 'ReadWritePaths="/data/100%% dock"' in lines
    assert "ReadWritePaths=-/var/lib/node" in lines
    assert "DeviceAllow=/dev/rfcomm0 rw" in lines
    assert not [line for line in lines if line.startswith("StateDirectory")]
    assert after.files[TMPFILES].splitlines()[1] == 'd "/data/100% dock" 0700 whenabouts whenabouts -'
    assert [state_directory(d) for d in ("/var/lib/a/b", "/var/lib/", "/var/lib/a b", "/var/lib/../x", "/data")] == [
        "a/b", None, None, None, None,
    ]  # fmt: skip


@pytest.mark.parametrize("state_dir", ["/var/lib/whenabouts", "/data/100% dock"])
def test_the_unit_is_valid_and_its_exposure_is_low(tmp_path, state_dir):
    """By systemd's own judgement, below 2.5 of 10; this test needs systemd-analyze and reports its absence."""
    analyze = shutil.which("systemd-analyze")
    assert analyze, "found no systemd-analyze, expected it for the limit of the unit's exposure; install systemd"
    file = tmp_path / "whenabouts-edge.service"
    file.write_text(unit((sys.executable, "-m", "whenabouts_edge.cli", "run"), "daemon", state_dir, ["/dev/rfcomm0"]))
    verified = subprocess.run([analyze, "verify", "--man=false", file], capture_output=True, text=True, check=False)
    assert (verified.returncode, [line for line in verified.stderr.splitlines() if file.name in line]) == (0, [])
    judged = subprocess.run(
        [analyze, "security", "--offline=true", "--no-pager", "--threshold=25", file],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    exposure = re.search(r"exposure level for \S+: ([0-9.]+)", judged.stdout)
    assert exposure, judged.stdout + judged.stderr
    assert float(exposure[1]) < EXPOSURE_MAX
    assert judged.returncode == 0


PORTS = [
    "/dev/ttyUSB0", "/dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A5-if00-port0", "/dev/ttyAMA0", "replay://x",
    "/dev/serial/by-id/usb-SparkFun_Nano-if02",
    "/dev/serial/by-path/platform-fd500000.pcie-pci-0000:01:00.0-usb-0:1.4:1.0-port0",
    '/dev/serial/by-id/usb-x*", RUN+="y-if00', "/dev/ttyUSB*",
]  # fmt: skip


def test_the_rule_is_lines_of_matches_and_assignments_with_a_label_for_every_jump():
    """The grammar of udev(7): what is misspelt would be ignored with a line in a log that nobody reads."""
    word = re.compile(
        r"(ACTION|SUBSYSTEMS?|KERNEL|DRIVERS|ATTR\{[\w/]+\}|ENV\{[\w.]+\}|GOTO|LABEL|GROUP|MODE|SYMLINK|IMPORT\{builtin\})"
        r'(==|!=|\+=|=)"[^"]*"'
    )
    for rule in (udev_rule([]), udev_rule(PORTS)):
        for line in [line for line in rule.splitlines() if line and not line.startswith("#")]:
            assert all(word.fullmatch(part) for part in line.split(", ")), line
        assert set(re.findall(r'GOTO="(\w+)"', rule)) == set(re.findall(r'LABEL="(\w+)"', rule))


def outcome(rule: str, device: dict[str, str]) -> dict[str, str]:
    """Assignments that the rule makes for a device, by a small reading of udev(7): matches by shell patterns, jumps."""
    values, label = dict(device), ""
    for line in [line for line in rule.splitlines() if line and not line.startswith("#")]:
        parts = re.findall(r'([A-Z]+(?:\{[^}]+\})?)(==|!=|\+=|=)"([^"]*)"', line)
        if label and ("LABEL", "=", label) not in parts:
            continue
        label = ""
        fits = all(
            any(fnmatchcase(values.get(key, ""), one) for one in text.split("|")) == (how == "==")
            for key, how, text in parts
            if how in ("==", "!=")
        )
        for key, how, text in parts if fits else []:
            if key == "GOTO":
                label = text
            elif how in ("=", "+=") and not text.startswith("$attr"):
                values[key] = text
    return {key: value for key, value in values.items() if key not in device}


FTDI = {
    "ACTION": "add", "SUBSYSTEM": "tty", "KERNEL": "ttyUSB3", "DRIVERS": "ftdi_sio", "ENV{ID_BUS}": "usb",
    "ENV{ID_SERIAL}": "FTDI_FT232R_USB_UART_A5", "ENV{ID_USB_INTERFACE_NUM}": "00", "ENV{.ID_PORT}": "0",
}  # fmt: skip
BY_PATH = {"ENV{ID_PATH}": "platform-fd500000.pcie-pci-0000:01:00.0-usb-0:1.4:1.0", "ENV{ID_SERIAL}": "other"}


@pytest.mark.parametrize(("changes", "is_reader"), [
    ({}, True), ({"ENV{ID_SERIAL}": "Quectel_EC25"}, False), ({"ENV{.ID_PORT}": "1"}, False), (BY_PATH, True),
    ({"KERNEL": "ttyUSB0", "ENV{ID_SERIAL}": "x"}, True), ({"KERNEL": "ttyS0"}, False),
    ({"KERNEL": "ttyACM1", "ENV{ID_SERIAL}": "SparkFun_Nano", "ENV{ID_USB_INTERFACE_NUM}": "02", "ENV{.ID_PORT}": ""}, True),
    ({"KERNEL": "ttyACM1", "ENV{ID_SERIAL}": "SparkFun_Nano", "ENV{.ID_PORT}": ""}, False), ({"ACTION": "remove"}, False),
])  # fmt: skip
def test_modem_manager_is_kept_from_the_ports_of_configured_readers_and_from_no_other(changes, is_reader):
    """A modem beside them stays a modem; the mark is of the port, not of the whole device. Links by id are for all."""
    made = outcome(udev_rule(PORTS), {**FTDI, **changes})
    assert (made.get("ENV{ID_MM_PORT_IGNORE}") == "1") == is_reader
    assert (made.get("GROUP") == "dialout") == is_reader
    assert "ENV{ID_MM_DEVICE_IGNORE}" not in made
    assert ("SYMLINK" in made) == ("ACTION" not in changes and changes.get("KERNEL") != "ttyS0")
    assert "ENV{ID_MM_PORT_IGNORE}" not in outcome(udev_rule([]), {**FTDI, **changes})


def run(*arguments: object):
    """The command, installed as the README shows; these tests may run below a folder that services do not see."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command_module, "program", lambda: ("/opt/whenabouts/bin/whenabouts-edge",))
        return CliRunner().invoke(command, [*map(str, arguments)])


def contents(folder: Path) -> dict[str, str]:
    """Files of ours, and the entries of ours in the tables of users."""
    texts = {
        str(p.relative_to(folder)): p.read_text()
        for p in folder.rglob("*")
        if p.is_file() and "whenabouts" in str(p.relative_to(folder))
    }
    tables = "".join(
        (folder / f"etc/{name}").read_text() for name in ("passwd", "group") if (folder / f"etc/{name}").exists()
    )
    return {**texts, "entries": "\n".join(sorted(line for line in tables.splitlines() if "whenabouts" in line))}


def test_into_a_folder_twice_and_out_again(tmp_path):
    """The real tools make user, membership and the link; a dry run makes nothing, a second run no difference."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/login.defs").write_text(
        "USERGROUPS_ENAB yes\n"
    )  # as on every Debian: a user's own group goes with it
    planned = run("--root", tmp_path, "--dry-run")
    assert (planned.exit_code, [p.name for p in tmp_path.rglob("*")]) == (0, ["etc", "login.defs"])
    assert f"write   {UNIT}" in planned.output
    first = run("--root", tmp_path)
    assert first.exit_code == 0, first.output
    installed = contents(tmp_path)
    assert {"/" + path for path in installed} >= {UNIT, RULE, SYSUSERS, CONFIG}
    assert installed["etc/whenabouts/edge.toml"] == sample()
    assert re.search(r"^dialout:.*:whenabouts$", installed["entries"], re.M)
    assert (tmp_path / "etc/systemd/system/multi-user.target.wants/whenabouts-edge.service").is_symlink()
    again = run("--root", tmp_path, "--json")
    assert [a["verb"] for a in json.loads(again.stdout)["actions"]] == ["keep", "keep", "keep", "keep", "run"]
    assert contents(tmp_path) == installed

    (tmp_path / CONFIG[1:]).write_text(FINE)
    spool = tmp_path / "var/lib/whenabouts/spool.sqlite"
    spool.parent.mkdir(parents=True)
    spool.write_bytes(b"readings")
    assert run("--root", tmp_path, "--uninstall").exit_code == 0
    left = contents(tmp_path)
    assert set(left) == {
        "etc/whenabouts/edge.toml", "var/lib/whenabouts/spool.sqlite", "etc/sysusers.d/whenabouts.conf", "entries",
    }  # fmt: skip
    assert left["etc/whenabouts/edge.toml"] == FINE
    assert left["entries"] == installed["entries"]
    planned = run("--root", tmp_path, "--uninstall", "--purge", "--dry-run")
    assert re.search(r"^run +userdel .* whenabouts  \(was created for the agent\)$", planned.output, re.M)
    assert contents(tmp_path) == left

    foreign = spool.with_name("notes.txt")
    foreign.write_text("of somebody else")
    purged = run("--root", tmp_path, "--uninstall", "--purge")
    assert purged.exit_code == 0, purged.output
    assert set(contents(tmp_path)) == {"var/lib/whenabouts/notes.txt", "entries"}
    assert contents(tmp_path)["entries"] == ""


def test_a_step_that_fails_ends_the_run_and_is_reported(tmp_path):
    """The steps before it are listed as done; the exit code shows the failure."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/udev").write_text("a file where a folder is needed")
    result = run("--root", tmp_path, "--json")
    reported = json.loads(result.stdout)
    assert (result.exit_code, reported["ok"]) == (1, False)
    assert [a["done"] for a in reported["actions"]] == [True, True, False, False, False, False]
    assert reported["mistakes"][0].startswith(f"write {RULE}: ")
    with pytest.raises(StepError, match="found no program no-such-tool, expected"):
        carry_out(replace(install(PROGRAM, NOTHING)[1], command=("no-such-tool",)), None)


def test_facts_of_a_folder(tmp_path):
    """Comments and members come from its own tables of users, the configuration from inside it."""
    (tmp_path / "etc/whenabouts").mkdir(parents=True)
    (tmp_path / "etc/passwd").write_text("pi:x:1000:1000:,,,:/home/pi:/bin/bash\nbroken line\n")
    (tmp_path / "etc/group").write_text("dialout:x:20:pi,other\n")
    (tmp_path / "etc/whenabouts/edge.toml").write_text(FINE)
    facts = collect(CONFIG, str(tmp_path))
    assert (dict(facts.users), facts.members, facts.live) == ({"pi": ",,,"}, {"pi", "other"}, False)
    assert facts.config.gateway == "dock-1"
    assert facts.state_there is False


def test_wrong_usage():
    """--purge without --uninstall is ambiguous."""
    assert run("--purge").exit_code == 2
