"""`check`, `status`, `run` and `sample-config` as commands: what they print, and with what they end."""

import getpass
import json
import tomllib

import pytest
from click.testing import CliRunner

from support.edge.config import FINE, GROUP_LINES, command
from whenabouts_edge.cli import main
from whenabouts_hardware import READERS


def test_check_command_answers_people_and_machines(tmp_path):
    """Exit 0 with a summary, exit 2 with every mistake; JSON on request."""
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text(FINE)
    bad.write_text(FINE.replace('"m6e"', '"m6"').replace("site", "sit"))
    done = command("check", "--config", good)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"{good}: fine. Gateway warehouse/dock-1, broker localhost:1883.\n"
        "  reader dock: m6e on /dev/ttyUSB0, stream dock/tags\n"
    )
    member = tmp_path / "member.toml"
    member.write_text(FINE + GROUP_LINES)
    assert command("check", "--config", member).stdout.splitlines()[-2:] == [
        "  group office with warehouse/door-1, shop/till-1, stream dock-1/state",
        "  state loaded: presence in dock/tags",
    ]
    done = command("check", "--config", good, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout) == {
        "ok": True, "site": "warehouse", "gateway": "dock-1",
        "readers": [{"name": "dock", "kind": "m6e", "port": "/dev/ttyUSB0", "stream": "dock/tags"}],
        "group": None, "files": [],
    }  # fmt: skip
    done = command("check", "--config", bad)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"{bad}:1: site is missing: Site of this gateway; first level of its topics.",
        f"{bad}:1: unknown key sit; did you mean site?",
        f"{bad}:5: [reader] kind: found 'm6', expected one of {', '.join(sorted(READERS))}",
    ]
    done = command("check", "--config", bad, "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["ok"] is False
    assert len(json.loads(done.stdout)["mistakes"]) == 3


@pytest.fixture
def named(tmp_path):
    """(a configuration, the expected reports on its files): one missing, one a folder, one that is there."""
    (tmp_path / "key").touch(0o600)
    (tmp_path / "rules").mkdir()
    config = tmp_path / "edge.toml"
    lines = [f'{key} = "{tmp_path}/{name}"\n' for key, name in (("cert_file", "cert"), ("key_file", "key"))]
    config.write_text(f'rules_file = "{tmp_path}/rules"\n{FINE}[broker]\n{"".join(lines)}')
    return config, [
        {"found": f"cert_file: {tmp_path}/cert does not exist", "fix": "create it, or correct cert_file"},
        {"found": f"rules_file: {tmp_path}/rules is a folder, expected a file", "fix": "correct rules_file"},
    ]


@pytest.mark.parametrize("installed", [False, True])
def test_check_reports_files_that_the_agent_could_not_read(named, installed, tmp_path, monkeypatch):
    """In the words of `doctor`; a problem on the gateway only, as elsewhere they need not be there."""
    config, reported = named
    unit = tmp_path / "unit"
    monkeypatch.setattr("whenabouts_edge.health.doctor.UNIT", str(unit))
    if installed:
        unit.write_text(f"[Service]\nUser={getpass.getuser()}\n")
    done = CliRunner().invoke(main, ["check", "--config", str(config)])
    assert done.exit_code == (1 if installed else 0)
    assert ("fine." in done.stdout) == (not installed)
    lines = [line for one in reported for line in (f"LOOK  files: {one['found']}", f"      -> {one['fix']}")]
    assert done.stderr.splitlines()[:4] == lines
    assert ("run `doctor` on the gateway" in done.stderr) == (not installed)
    done = CliRunner().invoke(main, ["check", "--config", str(config), "--json"])
    assert (done.exit_code, json.loads(done.stdout)["ok"]) == ((1, False) if installed else (0, True))
    assert json.loads(done.stdout)["files"] == reported


def test_commands_without_their_files_say_what_to_do(tmp_path):
    """No --config is wrong usage; no status yet and an unusable folder are problems with an advice, not tracebacks."""
    assert command("check").returncode == 2
    config = tmp_path / "edge.toml"
    config.write_text(f'state_dir = "{tmp_path / "state"}"\n' + FINE)
    done = command("status", "--config", config)
    assert done.returncode == 1
    assert "has the agent run with this state_dir?" in done.stderr
    (tmp_path / "state").write_text("a file")
    done = command("run", "--config", config)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "set state_dir to a folder that this user may write to" in done.stderr
    (tmp_path / "state").unlink()
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "status.json").write_text("[]")
    done = command("status", "--config", config)
    assert done.returncode == 1
    assert "restart the agent" in done.stderr
    assert tomllib.loads(command("sample-config").stdout)["site"] == "warehouse"


GOOD_STATUS = {
    "site": "s", "gateway": "g", "running": True, "boot": 1, "written_us": 0, "refused": 0, "readers": {}, "group": None,
    "broker": {"connected": True, "problem": "", "mqtt": "5", "troubles": [], "certificate_end_s": None},
    "clock": {"state": "bounded", "bound_us": 1000},
    "spool": {"readings": 1, "bytes": 2},
}  # fmt: skip


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (json.dumps(GOOD_STATUS), "killed or hanging"),
        (
            json.dumps(GOOD_STATUS | {"clock": {"state": "bounded", "bound_us": 1000, "never_dated": 3}}),
            "bound 1.0 ms, 3 readings stored with unknown time",
        ),
        (json.dumps(GOOD_STATUS | {"spool": 3}), "found no status of this version"),
        (json.dumps(GOOD_STATUS | {"clock": {"state": "bounded", "bound_us": "x"}}), "found no status of this version"),
        (json.dumps(GOOD_STATUS | {"readers": [1]}), "found no status of this version"),
        ("[" * 100_000, "cannot read"), ("1" * 9999, "cannot read"), ("\0", "cannot read"), ("", "cannot read"),
    ],
)  # fmt: skip
def test_status_of_any_file_ends_without_a_traceback(tmp_path, content, said):
    """Shows its contents, or that it is invalid."""
    (tmp_path / "edge.toml").write_text(f'state_dir = "{tmp_path}"\n' + FINE)
    (tmp_path / "status.json").write_text(content)
    done = CliRunner().invoke(main, ["status", "--config", str(tmp_path / "edge.toml")])
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit)
    assert said in done.output
