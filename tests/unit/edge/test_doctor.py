"""The doctor's findings: the meaning of facts as tables, and the facts of real ports, processes, brokers and spools."""

import grp
import json
import os
import pwd
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from support.edge.llrp import Portal, Reading, running
from whenabouts_edge.cli import main
from whenabouts_edge.config.load import parse
from whenabouts_edge.config.options import load
from whenabouts_edge.health import facts
from whenabouts_edge.health.doctor import doctor, examine_network
from whenabouts_edge.health.findings import (
    BEGIN_US,
    RESERVE_BYTES,
    BrokerFacts,
    ClockFacts,
    DiskFacts,
    FileFacts,
    Finding,
    PathFacts,
    PortFacts,
    UserFacts,
    may,
    needs_a_look,
    of_broker,
    of_clock,
    of_disk,
    of_file,
    of_modems,
    of_port,
    of_user,
)
from whenabouts_edge.store.spool import Spool
from whenabouts_sim.stack.broker import free_port

DIALOUT = 20
WHO = UserFacts("whenabouts", 998, frozenset({998, DIALOUT}))
TTY = PathFacts(0, DIALOUT, "dialout", 0o660)
BY_ID = "/dev/serial/by-id/usb-FTDI_FT232R_A5-if00-port0"
PORT = PortFacts("dock", BY_ID, True, TTY, (BY_ID,), ("/dev/ttyUSB0",), (), False)
CLOCK = ClockFacts("auto", "chrony", "bounded", 1_500, BEGIN_US + 1, True, False, 50.0, True)
BROKER = BrokerFacts("broker.example.org", 8883, True, "dock-1", "fine")
HOME = PathFacts(998, 998, "whenabouts", 0o700)
DISK = DiskFacts("/var/lib/whenabouts", "/var/lib/whenabouts", HOME, 10 << 30, False, 256 << 20, "fine", 0, ())


def looks(findings) -> list[tuple[str, str]]:
    """Each fault has its fix."""
    return [(finding.found, finding.fix) for finding in needs_a_look(list(findings))]


def test_a_healthy_gateway_needs_no_look():
    """Every area is reported nevertheless: silence would not show that it was checked."""
    findings = [
        of_user(WHO, "dialout", DIALOUT), *of_port(PORT, WHO), *of_clock(CLOCK), of_broker(BROKER), *of_disk(DISK, WHO)
    ]  # fmt: skip
    assert looks(findings) == []
    assert {f.area for f in findings} == {"user", "port dock", "clock", "boot", "broker", "disk", "spool"}


@pytest.mark.parametrize(
    ("port", "user", "expected"),
    [
        (replace(PORT, path=None), WHO, [("does not exist; there are /dev/ttyUSB0", "plug the reader in")]),
        (replace(PORT, path=None, others=()), WHO, [("no serial port exists", "plug the reader in")]),
        (replace(PORT, port="/dev/ttyUSB0"), WHO, [("may be another device", f'name it by id: port = "{BY_ID}"')]),
        (replace(PORT, port="/dev/ttyACM0", by_id=()), WHO, [("may be another", "a link of /dev/serial")]),
        (PORT, replace(WHO, group_ids=frozenset({998})),
         [("user whenabouts may not use it; it belongs to group dialout", "sudo usermod -aG dialout whenabouts")]),
        (replace(PORT, path=PathFacts(0, 0, "root", 0o600)), WHO, [("may not use it", "sudo whenabouts-edge install")]),
        (PORT, replace(WHO, session_ids=frozenset({998})), [("joined group dialout after this session", "log in again")]),
        (PORT, replace(WHO, session_ids=frozenset({998, DIALOUT})), []),
        (replace(PORT, holders=((7, "minicom", False),)), WHO, [("is open in minicom (7)", "end it")]),
        (replace(PORT, holders=((7, "ModemManager", False),)), WHO, [("ModemManager (7)", "whenabouts-edge install")]),
        (replace(PORT, holders=((7, "whenabouts-edge", True),)), WHO, []),
        (replace(PORT, holders=((7, "python", True), (8, "cat", False))), WHO, [("is open in cat (8)", "end it")]),
        (replace(PORT, port="replay://tape", is_device=False, path=None), WHO, []),
        (replace(PORT, path=replace(TTY, kind="folder")), WHO, [("is a folder, expected a serial port", "correct port")]),
        (replace(PORT, path=None), UserFacts("root", 0, frozenset({0})), [("does not exist", "plug")]),
    ],
)  # fmt: skip
def test_ports(port, user, expected):
    """Missing, named so that it changes, forbidden, taken; our own agent is no stranger."""
    shown = looks(of_port(port, user))
    assert len(shown) == len(expected)
    for (text, fix), (part, fix_part) in zip(shown, expected, strict=True):
        assert part in text
        assert fix_part in fix


def test_a_check_that_was_not_possible_is_reported_and_is_no_trouble():
    """An ordinary user does not see whose files are open."""
    [finding] = of_port(replace(PORT, unseen=True), WHO)
    assert finding.fine
    assert "sudo" in finding.found


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"bound_us": None, "state": "unbounded", "chronyd": False}, [("no source knows", "apt install chrony")]),
        ({"bound_us": None, "state": "unbounded"}, [("no source knows", "chronyc sources")]),
        ({"bound_us": None, "state": "unbounded", "chronyd": False, "timesyncd": True}, [("no source", "timedatectl")]),
        ({"bound_us": 1_000_001}, [("bound 1000.0 ms: stamps are wide", "chronyc sources -v")]),
        ({"bound_us": 1_000_000}, []),
        ({"state": "free-running"}, [("free-running by chrony", "time server can be reached")]),
        ({"now_us": BEGIN_US - 1}, [("not been set since the machine started", "time server")]),
        ({"configured": "sim"}, [("simulated", "auto")]),
        ({"timesyncd": True}, [("both set it", "disable --now systemd-timesyncd")]),
        ({"configured": "adjtimex", "chronyd": False, "timesyncd": True}, [("sets the kernel's value to 0", "chrony")]),
        ({"max_clock_error_ppm": None}, [("a drift of 1 ppm", "maxclockerror 50")]),
        ({"max_clock_error_ppm": 9.9}, [("a drift of 9.9 ppm", "maxclockerror 50")]),
        ({"max_clock_error_ppm": 0.0}, [("a drift of 0 ppm", "maxclockerror 50")]),
        ({"max_clock_error_ppm": 10.0}, []),
        ({"rtc": False}, []),
        ({"rtc": False, "configured": "fixed", "source": "fixed"}, [("starts in the past", "auto")]),
        ({"configured": "fixed", "source": "fixed", "max_clock_error_ppm": None}, []),
        ({"source": "timesyncd", "chronyd": False, "timesyncd": True}, []),
    ],
)  # fmt: skip
def test_clocks(changes, expected):
    """Unknown, wide, growing, never set; and the settings that make a bound false without showing."""
    shown = looks(of_clock(replace(CLOCK, **changes)))
    assert len(shown) == len(expected)
    for (text, fix), (part, fix_part) in zip(shown, expected, strict=True):
        assert part in text
        assert fix_part in fix


@pytest.mark.parametrize("stage", ["name", "connect", "tls", "mqtt", "login"])
def test_every_stage_of_the_connection_has_its_own_fix(stage):
    """A finding names place and reason."""
    finding = of_broker(replace(BROKER, stage=stage, problem="as reported"))
    assert finding.found == "broker.example.org:8883: as reported"
    assert not finding.fine
    others = {of_broker(replace(BROKER, stage=s)).fix for s in ("name", "connect", "tls", "mqtt", "login")} - {
        finding.fix
    }
    assert len(others) == 4


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"path": replace(HOME, uid=0)}, [("may not write", "sudo chown -R whenabouts /var/lib/whenabouts")]),
        ({"folder": "/var/lib", "path": PathFacts(0, 0, "root", 0o755), "spool": "none"},
         [("may not write to /var/lib", "sudo install -d -m 700 -o whenabouts /var/lib/whenabouts")]),
        ({"folder": "/var/lib", "path": PathFacts(0, 0, "root", 0o777), "spool": "none"}, []),
        ({"path": replace(HOME, kind="file")}, [("is a file, expected a folder", "correct state_dir")]),
        ({"read_only": True}, [("read-only", "remount")]),
        ({"free_bytes": (256 << 20) + RESERVE_BYTES - 1}, [("the spool may take 256 more", "limit_mib")]),
        ({"free_bytes": (256 << 20) + RESERVE_BYTES}, []),
        ({"free_bytes": RESERVE_BYTES, "spool_bytes": 300 << 20}, []),
        ({"spool": "damaged", "problem": "page 3"}, [("page 3", "start the agent")]),
        ({"spool": "folder"}, [("spool.sqlite is a folder, expected a file", "move it away")]),
        ({"spool": "in use"}, []), ({"spool": "unseen"}, []), ({"spool": "none"}, []),
        ({"quarantined": ("spool.sqlite.damaged-1",)}, [("spool.sqlite.damaged-1", ".recover")]),
    ],
)  # fmt: skip
def test_disks(changes, expected):
    """Rights, room to the byte, integrity, and files quarantined earlier."""
    shown = looks(of_disk(replace(DISK, **changes), WHO))
    assert len(shown) == len(expected)
    for (text, fix), (part, fix_part) in zip(shown, expected, strict=True):
        assert part in text
        assert fix_part in fix


def test_a_modem_is_named_and_its_port_is_not_taken_for_a_reader_s(tmp_path):
    """A USB device with a control channel or a network interface beside its serial ports."""
    (tmp_path / "1-1" / "1-1:1.4" / "usbmisc" / "cdc-wdm0").mkdir(parents=True)
    (tmp_path / "1-2").mkdir()
    owners = [*[(str(tmp_path / "1-1"), "EC25")] * 2, (str(tmp_path / "1-2"), "FT232R"), (None, None)]
    ports = [
        SimpleNamespace(device=f"/dev/ttyUSB{n}", usb_device_path=folder, product=name, description="")
        for n, (folder, name) in enumerate(owners)
    ]
    modems = facts.modems(ports)
    assert modems == {"/dev/ttyUSB0": "EC25", "/dev/ttyUSB1": "EC25"}
    [named] = of_modems(modems, True)
    assert named.found == "EC25 at /dev/ttyUSB0, /dev/ttyUSB1; left to ModemManager"
    assert named.fine
    [(found, fix)] = looks(of_port(replace(PORT, modem="EC25"), WHO))
    assert found.endswith("belongs to a modem, EC25")
    assert fix.startswith("correct port")
    assert "does not run" in next(of_modems(modems, False)).found


def test_user_without_the_group_of_ports():
    """Only where the system has that group; root needs none."""
    alone = replace(WHO, group_ids=frozenset({998}))
    assert "usermod -aG dialout whenabouts" in of_user(alone, "dialout", DIALOUT).fix
    assert of_user(alone, "dialout", None).fine
    assert of_user(UserFacts("root", 0, frozenset()), "dialout", DIALOUT).fine


def test_rights_are_the_system_s_own(tmp_path):
    """The first of owner, group and others that fits decides, though a later one would allow more."""
    assert [may(WHO, PathFacts(998, DIALOUT, "dialout", mode), 6) for mode in (0o600, 0o060, 0o006)] == [
        True,
        False,
        False,
    ]
    assert [may(WHO, PathFacts(0, DIALOUT, "dialout", mode), 6) for mode in (0o600, 0o060, 0o006)] == [
        False,
        True,
        False,
    ]
    assert [may(WHO, PathFacts(0, 0, "root", mode), 6) for mode in (0o600, 0o060, 0o006)] == [False, False, True]
    assert may(UserFacts("root", 0, frozenset()), PathFacts(998, 0, "root", 0), 6)


SECRET = PathFacts(0, 998, "whenabouts", 0o640)
ETC = ("/etc", PathFacts(0, 0, "root", 0o755))


@pytest.mark.parametrize(
    ("path", "above", "problem", "fix"),
    [
        (SECRET, (ETC,), "can be read", ""),
        (replace(SECRET, gid=0), (ETC,), "may not read", "sudo chgrp whenabouts /etc/x/secret; sudo chmod 640"),
        (replace(SECRET, kind="folder"), (ETC,), "is a folder, expected a file", "correct password_file"),
        (None, (ETC,), "does not exist", "create it, or correct password_file"),
        (SECRET, (ETC, ("/etc/x", PathFacts(0, 0, "root", 0o700))), "may not enter /etc/x", "move /etc/x/secret to"),
        (None, (ETC, ("/etc/x", PathFacts(0, 0, "root", 0o700))), "may not enter /etc/x", "move /etc/x/secret to"),
    ],
)
def test_files_that_the_agent_reads(path, above, problem, fix):
    """Itself and every folder on the way, with the rights of the agent's user, not of the caller."""
    finding = of_file(FileFacts("password_file", "/etc/x/secret", path, above), WHO)
    assert problem in finding.found
    assert finding.fix.startswith(fix)
    assert finding.fine == (fix == "")


def test_files_are_those_of_the_configuration(tmp_path):
    """One that is there with all folders above it, one that is not; files that are not configured are not checked."""
    (tmp_path / "rules").write_text("")
    text = f'rules_file = "{tmp_path}/rules"\n' + reader_lines("p") + f'[broker]\nca_file = "{tmp_path}/no/ca.pem"\n'
    ca, rules = facts.files(parse(text))
    assert (ca.key, ca.path, ca.above[0][0], ca.above[-1][0]) == ("ca_file", None, "/", str(tmp_path))
    assert (rules.key, rules.path.uid, rules.above[-1][0]) == ("rules_file", os.geteuid(), str(tmp_path))
    assert (rules.path.kind, rules.above[-1][1].kind) == ("file", "folder")


def reader_lines(port: str) -> str:
    return f'site = "s"\ngateway = "g"\n[[reader]]\nname = "dock"\nkind = "rdm6300"\nport = "{port}"\n'


def test_a_real_port_and_the_process_that_has_it_open(tmp_path):
    """Behind a link as udev makes them; named by process, ours distinguished from others."""
    master, slave = os.openpty()
    link = tmp_path / "usb-reader"
    link.symlink_to(os.ttyname(slave))
    readers = parse(reader_lines(str(link))).readers
    os.close(slave)
    holder = subprocess.Popen(
        [sys.executable, "-c", f"f = open({str(link)!r}, 'rb', 0); print(1, flush=True); input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        holder.stdout.readline()
        [port] = facts.ports(readers, None)
        assert [(pid, ours) for pid, _, ours in port.holders] == [(holder.pid, False)]
        assert f"({holder.pid})" in looks(of_port(port, UserFacts("root", 0, frozenset())))[0][0]
        [port] = facts.ports(readers, holder.pid)
        assert [(pid, ours) for pid, _, ours in port.holders] == [(holder.pid, True)]
    finally:
        holder.communicate(b"\n")
        os.close(master)
    [port] = facts.ports(readers, None)
    assert port.path is None
    [port] = facts.ports(parse(reader_lines("replay://tape")).readers, None)
    assert (port.is_device, port.holders) == (False, ())


def test_users_and_groups_of_this_machine():
    """A name in the tables, the one that runs this, and one that is not there."""
    me = facts.user(None)
    assert me.uid == os.geteuid()
    assert set(os.getgroups()) <= me.group_ids
    assert facts.user("no-such-user-here").uid == me.uid
    other = next(entry for entry in pwd.getpwall() if entry.pw_uid != os.geteuid())
    known = facts.user(other.pw_name)
    assert (known.uid, known.session_ids) == (other.pw_uid, None)
    assert other.pw_gid in known.group_ids
    group = grp.getgrall()[0]
    assert facts.group_id(group.gr_name) == group.gr_gid
    assert facts.group_id("no-such-group-here") is None


@pytest.mark.parametrize(
    ("texts", "ppm"),
    [
        ([], None), (["pool x iburst\n# maxclockerror 50\n"], None), (["maxclockerror 1\n", " MaxClockError  50 "], 50.0),
        (["maxclockerror\n", "maxclockerror much\n", "maxclockerror 5 6\n"], None),
    ],
)  # fmt: skip
def test_chrony_s_assumed_drift_is_read_from_its_configuration(texts, ppm):
    """The last one counts; comments and what is no number do not."""
    assert facts.max_clock_error_ppm(texts) == ppm


def test_the_clock_is_the_one_that_the_agent_would_use():
    """A fixed bound comes through with its source."""
    table = parse(reader_lines("p") + '[clock]\nsource = "fixed"\nbound_us = 700\n').clock
    clock = facts.clock(table)
    assert (clock.configured, clock.source, clock.state) == ("fixed", "fixed", "bounded")
    assert clock.bound_us >= 700
    assert abs(clock.now_us - time.time_ns() // 1000) < 60_000_000


def test_spools_whole_damaged_in_use_and_missing(tmp_path):
    """A real one, closed and open; one with bytes turned over; files quarantined earlier are listed, not their journals."""
    config = parse(f'state_dir = "{tmp_path}"\n' + reader_lines("p"))
    assert facts.disk(config, None).spool == "none"
    spool = Spool(tmp_path / "spool.sqlite", 1 << 20)
    assert facts.disk(config, None).spool == "in use"
    spool.close()
    disk = facts.disk(config, None)
    assert (disk.spool, disk.folder, disk.quarantined) == ("fine", str(tmp_path), ())
    assert disk.spool_bytes == (tmp_path / "spool.sqlite").stat().st_size
    assert facts.disk(config, os.getpid()).spool == "in use"
    content = bytearray((tmp_path / "spool.sqlite").read_bytes())
    content[4096:4200] = b"\xff" * 104
    (tmp_path / "spool.sqlite").write_bytes(content)
    for name in ("spool.sqlite.damaged-1", "spool.sqlite.damaged-1-wal"):
        (tmp_path / name).write_bytes(b"")
    disk = facts.disk(config, None)
    assert (disk.spool, disk.quarantined) == ("damaged", ("spool.sqlite.damaged-1",))
    assert disk.problem
    below = facts.disk(replace(config, state_dir=str(tmp_path / "a" / "b")), None)
    assert (below.folder, below.spool) == (str(tmp_path), "none")
    (tmp_path / "a" / "spool.sqlite").mkdir(parents=True)
    assert facts.disk(replace(config, state_dir=str(tmp_path / "a")), None).spool == "folder"


def run(*arguments: object):
    return CliRunner().invoke(main, ["doctor", *map(str, arguments)])


def test_the_command_prints_every_finding_with_its_fix_and_changes_nothing(tmp_path):
    """Exit code 1 for a finding, 2 for an invalid configuration; text and JSON agree."""
    config = tmp_path / "edge.toml"
    state_dir = tmp_path / "state"
    config.write_text(
        f'state_dir = "{state_dir}"\n' + reader_lines("/dev/no-such-port") + f"[broker]\nport = {free_port()}\n"
    )
    reported = run("--config", config)
    assert reported.exit_code == 1, reported.output
    lines = reported.stdout.splitlines()
    at = lines.index(
        next(line for line in lines if line.startswith("LOOK  port dock: /dev/no-such-port does not exist"))
    )
    assert lines[at + 1].startswith("      -> plug the reader in")
    result = json.loads(run("--config", config, "--json").stdout)
    assert result["ok"] is False
    assert sum(not f["fine"] for f in result["findings"]) == sum(line.startswith("LOOK") for line in lines)
    assert all(bool(f["fix"]) != f["fine"] for f in result["findings"])
    assert not state_dir.exists()
    config.write_text("site = 1\n")
    assert run("--config", config).exit_code == 2
    with pytest.raises(SystemExit):
        load(config)


def test_the_command_ends_well_when_nothing_needs_a_look(tmp_path, monkeypatch):
    """Exit code 0."""
    monkeypatch.setattr("whenabouts_edge.health.doctor.examine", lambda config: [Finding("disk", "fine")])
    config = tmp_path / "edge.toml"
    config.write_text(reader_lines("p"))
    result = CliRunner().invoke(doctor, ["--config", str(config)])
    assert (result.exit_code, result.stdout) == (0, "fine  disk: fine\n")


def test_readers_on_the_network_are_asked_or_the_agent_is(tmp_path):
    """Without an agent the greeting is tried; with one its status is repeated, as a second client would be refused."""
    head = 'site="s"\ngateway="g"\n[[reader]]\nname="p"\nkind="llrp"\nhost="127.0.0.1"\nport={}\n'
    head += '[[reader]]\nname="d"\nkind="zebra"\ntopic="readers/d"\n'
    portal = Portal()
    with running(portal):
        config = parse(head.format(portal.port))
        [answers, silent] = examine_network(config, None)
        assert (answers.area, answers.found) == ("reader p", f"llrp://127.0.0.1:{portal.port}, answers")
        assert silent.found == "mqtt://readers/d; not checked, as the agent does not run"
        with Reading(portal.port) as reading:
            reading.wait("held", lambda: len(reading.readings) > 0)
            [held, _] = examine_network(config, None)
            assert "another client holds the reader" in held.found
            assert held.fix
    [gone, _] = examine_network(config, None)
    assert "nobody listens there" in gone.found
    status = {"readers": {"p": ("lost", "found no answer", ""), "d": ("reading", "", "its clock is 1.000 s behind")}}
    [lost, reads] = examine_network(config, status)
    assert (lost.found, lost.fine) == ("found no answer", False)
    assert (reads.found, reads.fine) == ("mqtt://readers/d, the agent says: reading, its clock is 1.000 s behind", True)
