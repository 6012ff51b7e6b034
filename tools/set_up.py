"""Fills the virtual environment .venv: `python tools/set_up.py demo` or `all`; run by `make demo` and `make setup`.

Compiling the engines needs few packages, and takes about as long as installing Spark. So two lanes run side by side:
one installs the packages for compiling the engines and compiles them, the other installs the rest and makes Spark start
quickly. `demo` installs and compiles what the demonstration runs; `all` installs and compiles everything. Packages that
stand in for Java and mosquitto are installed only where these are missing.

The machine's Python runs this file, creates the environment with rich in it, and continues with the Python of the
environment. pip's output goes to .venv/setup.log. An interrupted step is repeated; pip skips packages that are
installed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VENV = Path(".venv")
LOG = VENV / "setup.log"
PYTHON = str(VENV / "bin" / "python")
LOCKS = {"demo": "requirements-demo.lock", "all": "requirements.lock"}
SUBSTITUTES = {"Java": "requirements-java.lock", "mosquitto": "requirements-embedded-broker.lock"}
STAMPS = {"demo": (".demo-ready",), "all": (".demo-ready", ".ready")}
SOURCES = ("protocol", "hardware", "edge", "cloud", "library", "firmware_sim")
FIRST = ("rich", "markdown-it-py", "mdurl", "pygments", "setuptools")  # progress bars, and the build tool of Spark
ENGINES = (
    "numba",
    "llvmlite",
    "numpy",
    "pyarrow",
    "lark",
    "click",
    "cryptography",
    "cffi",
    "pycparser",
)  # to compile the engines
SPARK = ("pyspark",)
# A lock file names every package, so nothing has to be resolved.
PIP = (PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-deps")
# Python compiles a module when it is first imported. To compile all of them ahead takes longer than the rest of pip's work,
# and the demonstration imports few of them; the tests import most, in hundreds of processes.
LAZILY = {"demo": ("--no-compile",), "all": ()}
# Spark comes as source. Its jars are already compressed: compressing them again into a wheel would take 20 s.
BUILD = ("--no-build-isolation", "--config-settings=--build-option=--compression=stored")
EXPERIMENT = (PYTHON, "-m", "whenabouts_cloud.cli", "experiments")
COMPARED = ("correlation", "cep", "latwin")
TAIL = 30  # lines of the log that are shown when a stage fails
HINTS = (
    ("No space left on device", "the disk is full; about 2 GB are needed"),
    ("No matching distribution", "the package index was not reached, or lacks it: see the network, `pip config list`"),
    ("Connection", "the package index was not reached: see the network, `pip config list`"),
    ("DO NOT MATCH THE HASHES", "the index gave another file than the lock file names"),
)  # fmt: skip


@dataclass(frozen=True)
class Stage:
    """One step of a set-up: its name as shown, and the command."""

    name: str
    command: tuple[str, ...]


class StageError(RuntimeError):
    """A stage failed; the text is the message to show."""


def split(lock: str) -> dict[str, str]:
    """The entries of a lock file by package; several entries of a package, for different machines, are joined."""
    entries: dict[str, str] = {}
    for entry in re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.M)[1:]:
        name = re.match(r"[A-Za-z0-9._-]+", entry)[0]  # type: ignore[index]
        entries[name] = entries.get(name, "") + entry
    return entries


def groups(lock: str) -> dict[str, str]:
    """A lock file in four parts: `first`, `engines`, `spark`, and all `others`."""
    entries = split(lock)
    parts = {"first": FIRST, "engines": ENGINES, "spark": SPARK}
    grouped = {part: "".join(entries.pop(name) for name in names) for part, names in parts.items()}
    return {**grouped, "others": "".join(entries.values())}


def lanes(what: str, files: dict[str, Path], more_pip: Sequence[str] = ()) -> list[list[Stage]]:
    """The stages that run side by side, each list in its order; `files` are the parts of the lock file."""

    def install(name: str, part: str, *options: str) -> Stage:
        return Stage(name, (*PIP, *LAZILY[what], *more_pip, *options, "--require-hashes", "-r", str(files[part])))

    compiling = {
        "demo": Stage("compile what the rules of the demonstration run", (PYTHON, "-m", "whenabouts_sim.demo.rules")),
        "all": Stage("compile the engines", (PYTHON, "-m", "whenabouts_cloud.warm", "engines")),
    }
    tested = [  # code that only tests run, and the tests themselves, which otherwise every worker of pytest would compile
        *(Stage(f"compile what {name} is compared with", (*EXPERIMENT, name, "--quick")) for name in COMPARED),
        Stage("compile the tests", (PYTHON, "-m", "pytest", "-qq", "-m", "compiles")),
    ]
    # The archive saves time when Spark starts more than once.
    starting = {
        "demo": Stage("compile what the demonstration imports", (PYTHON, "-m", "whenabouts_cloud.warm", "imports")),
        "all": Stage("archive of Java's classes", (PYTHON, "-m", "whenabouts_cloud.warm", "classes")),
    }
    project = Stage("this project", (*PIP, "--no-build-isolation", "-e", "."))
    return [
        [install("packages that compile", "engines"), compiling[what]],
        [
            install("other packages", "others"),
            install("Spark, 430 MB", "spark", *BUILD),
            project,
            *(tested if what == "all" else ()),
            starting[what],
        ],
    ]


def news(line: str) -> str:
    """The progress in a line of pip or a compiler, in a few words; empty for most lines."""
    match = re.match(
        r"\s*(Collecting|Downloading|Building wheel for|Installing collected packages|compiled) ?:?\s*(\S*)", line
    )
    if not match:
        return ""
    what, name = match.groups()
    if what.startswith("Installing"):
        return "installing"
    return f"{what.lower().removesuffix(' wheel for')} {re.split('[=;(]', name)[0].split('/')[-1][:40]}"


class Runner:
    """Runs commands with their output appended to the log, and can stop them all at once."""

    def __init__(self, log: Path) -> None:
        self._log, self._running, self._lock = log, set[subprocess.Popen[str]](), threading.Lock()
        self.stopped = False

    def __call__(self, stage: Stage, report: Callable[[str], None]) -> None:
        """Run one stage to its end.

        Raises:
            StageError: it failed.
        """
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(SOURCES), "PYTHONUNBUFFERED": "1"}
        with self._lock:
            if self.stopped:
                raise StageError("stopped")
            process = subprocess.Popen(
                stage.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                errors="replace", env=env, start_new_session=True,
            )  # fmt: skip
            self._running.add(process)
        try:
            lines = self._follow(stage, process, report)
            code, core_s = ended(process)
        except BaseException:
            self.stop()
            process.wait()
            raise
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{stage.name}: took {core_s:.1f} s of a core\n")
        self._running.discard(process)
        if code:
            raise StageError(failure(stage, code, lines, self._log))

    def _follow(self, stage: Stage, process: subprocess.Popen[str], report: Callable[[str], None]) -> list[str]:
        """The output of the process until it is closed."""
        lines: list[str] = []
        assert process.stdout is not None
        with self._log.open("a", encoding="utf-8", buffering=1) as log:
            for line in process.stdout:
                if progress := re.match(r"Progress (\d+) of (\d+)", line):
                    report(f"{int(progress[1]) >> 20} of {int(progress[2]) >> 20} MB")
                    continue
                log.write(f"{stage.name}: {line}")
                lines.append(line)
                if said := news(line):
                    report(said)
        return lines

    def stop(self) -> None:
        """Stop all running commands, and start no more."""
        with self._lock:
            self.stopped = True
            for process in list(self._running):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)


def ended(process: subprocess.Popen[str]) -> tuple[int, float]:
    """Wait for a process to end; return its exit code, and the seconds of CPU time of it and its children."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime


def failure(stage: Stage, code: int, lines: list[str], log: Path) -> str:
    """The message for a failed stage: the end of its output, the likely reason, and what to do."""
    text = "".join(lines)
    hint = next((f"setup: {why}\n" for sign, why in HINTS if sign in text), "")
    return (
        f"{''.join(lines[-TAIL:]).rstrip()}\nsetup: {stage.name} failed (exit code {code}); its whole output is in {log}\n"
        f"{hint}setup: run it again to continue"
    )


class Lines:
    """Progress without a terminal: one line for each stage when it is done."""

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[Callable[[str], None]]:
        """Context of a stage; gives a function for news, which ignores them."""
        begin = time.monotonic()
        yield lambda said: None
        print(f"setup: {name}, {time.monotonic() - begin:.0f} s", flush=True)

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Bars:
    """Progress on a terminal: a moving bar for each stage, with its seconds and latest news."""

    def __init__(self, console: Any = None) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            TextColumn("setup: {task.description}"),
            BarColumn(20),
            TimeElapsedColumn(),
            TextColumn("{task.fields[said]}"),
            console=console,
        )

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[Callable[[str], None]]:
        """Context of a stage; gives a function that shows news."""
        task = self._progress.add_task(name, total=None, said="")
        yield lambda said: self._progress.update(task, said=said)
        self._progress.update(task, total=1, completed=1, said="")


def run(lists: list[list[Stage]], runner: Any, shown: Any) -> None:
    """Run the lists of stages side by side; when one fails, all stop.

    Raises:
        StageError: the first failure.
        KeyboardInterrupt: a person stopped it; everything has ended.
    """
    failed: list[BaseException] = []

    def work(stages: list[Stage]) -> None:
        for stage in stages:
            try:
                with shown.stage(stage.name) as report:
                    runner(stage, report)
            except Exception as error:
                failed.append(error)
                runner.stop()
                return

    threads = [threading.Thread(target=work, args=(stages,)) for stages in lists]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        runner.stop()
        for thread in threads:
            thread.join()
        raise
    if failed:
        raise failed[0]


def drop_unfinished(venv: Path) -> None:
    """Remove the metadata of packages whose installation was interrupted: pip writes RECORD last and would treat them
    as complete.
    """
    for described in venv.glob("lib/python*/site-packages/*.dist-info"):
        if not (described / "RECORD").exists():
            shutil.rmtree(described)


def missing_programs(environ: Mapping[str, str]) -> list[str]:
    """Those of `SUBSTITUTES` that this machine lacks."""
    sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in SOURCES]
    from whenabouts_cloud.jobs.session.java import java_is_installed
    from whenabouts_sim.stack.broker import find_mosquitto

    there = {"Java": java_is_installed(environ), "mosquitto": find_mosquitto() is not None}
    return [program for program in SUBSTITUTES if not there[program]]


def joined(locks: Sequence[Path]) -> str:
    """Lock files as one. They agree in the versions of packages that stand in several."""
    entries: dict[str, str] = {}
    for lock in locks:
        entries |= split(lock.read_text(encoding="utf-8"))
    return "".join(entries.values())


def parts_of(what: str, folder: Path, missing: Sequence[str] = ()) -> dict[str, Path]:
    """Write the parts of a lock file as separate files in this folder, with the substitutes for missing programs."""
    files = {}
    for part, text in groups(joined([Path(LOCKS[what]), *(Path(SUBSTITUTES[one]) for one in missing)])).items():
        files[part] = folder / f"{what}-{part}.txt"
        files[part].write_text(text, encoding="utf-8")
    return files


def begin(what: str) -> None:
    """Create the environment and install the packages for progress bars; runs in the machine's Python."""
    with Lines().stage(f"virtual environment in {VENV}"):
        if not (VENV / "bin" / "python").exists():
            make_environment()
        LOG.write_text("")
        drop_unfinished(VENV)
        first = parts_of(what, VENV)["first"]
        bars = Stage(
            "packages that show progress", (*PIP, "--progress-bar", "off", "--require-hashes", "-r", str(first))
        )
        Runner(LOG)(bars, lambda said: None)


def make_environment() -> None:
    """Create a virtual environment with pip, or nothing at all.

    Raises:
        StageError: Python lacks the module for it.
    """
    try:
        made = subprocess.run([sys.executable, "-m", "venv", str(VENV)], capture_output=True, text=True)
    except BaseException:
        shutil.rmtree(VENV, ignore_errors=True)
        raise
    if made.returncode:
        shutil.rmtree(VENV, ignore_errors=True)
        said = (made.stdout + made.stderr).strip()
        raise StageError(f"{said}\nsetup: python could not make {VENV}; on Debian: apt-get install python3-venv")


def go_on(what: str) -> None:
    """Fill the environment; runs in its own Python."""
    from importlib.metadata import version

    new = tuple(map(int, re.findall(r"\d+", version("pip"))[:2])) >= (24, 1)
    missing = missing_programs(os.environ)
    for program in missing:
        print(f"setup: found no {program} that fits; installing a package instead")
    shown = Bars() if sys.stdout.isatty() else Lines()
    progress = ("--progress-bar", "raw" if new and isinstance(shown, Bars) else "off")
    with shown:
        run(lanes(what, parts_of(what, VENV, missing), progress), Runner(LOG), shown)
    for stamp in STAMPS[what]:
        (VENV / stamp).touch()


def main(what: str, begun: bool) -> None:
    """Begin, or continue with the Python of the environment."""
    version = sys.version_info
    if version < (3, 11):
        sys.exit(f"found Python {version[0]}.{version[1]}, expected 3.11 or newer; name one with make PYTHON=...")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if begun:
            go_on(what)
        else:
            begin(what)
            os.execv(PYTHON, [PYTHON, __file__, what, "begun"])
    except KeyboardInterrupt:
        print("\nsetup: stopped; run it again to continue", file=sys.stderr)
        sys.exit(130)
    except (StageError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1], begun="begun" in sys.argv)
