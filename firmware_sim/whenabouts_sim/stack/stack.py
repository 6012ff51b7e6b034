"""The whole system on one machine, each part in its own process: broker, agents, ingest, Spark job.

Used by the demonstration and by the system tests, which kill parts of it. Simulated readers live in this process behind
pseudo-terminals; agents open those like any serial port. Every process ends with this one, however it ends.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from whenabouts_cloud.enrol.names import PUBLISHER, identity_of, ingest_identity
from whenabouts_protocol.group_state import HEARTBEAT
from whenabouts_sim.judge.placement import Landed, ReadingId
from whenabouts_sim.judge.presence_overlap import Detected, LandedState
from whenabouts_sim.stack.broker import RunningBroker
from whenabouts_sim.stack.enrolment import Enrolment
from whenabouts_sim.stack.parent_death import with_parent
from whenabouts_sim.world.clocks import GatewayClock, SimClock
from whenabouts_sim.world.world import SimReader

STOP_S = 20.0  # after this a process that was asked to end is killed
POLL_S = 0.05
RESULTS_POLL_S = 0.5  # conditions on results read all of them

_LANDED_COLUMNS = ["gateway", "stream", "key", "boot", "seq", "t_min", "t_max"]


class PartError(RuntimeError):
    """A part did not start, or ended by itself; the text has the end of its log."""


class Part:
    """One process with its own log; stdout and stderr go there unless stdout is taken."""

    def __init__(self, name: str, command: Sequence[str], log: Path, stdout: bool = False) -> None:
        self.name, self.command, self.log = name, list(command), log
        self.began_s = time.monotonic()
        with log.open("ab") as file:
            self._began = file.seek(0, os.SEEK_END)
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if stdout else file,
                stderr=file,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": "1"},
                start_new_session=True,  # Ctrl-C reaches only the parent, which ends the parts in order
                preexec_fn=with_parent(),
            )

    @property
    def running(self) -> bool:
        """True if it has not ended."""
        return self.process.poll() is None

    @property
    def stdout(self) -> IO[bytes]:
        """Its standard output, if that was requested."""
        assert self.process.stdout is not None
        return self.process.stdout

    def json_lines(self) -> Iterator[dict[str, Any]]:
        """Objects that it writes to its standard output, one a line, as they come."""
        for line in self.stdout:
            yield json.loads(line)

    def check(self) -> None:
        """Raise PartError if it has ended."""
        code = self.process.poll()
        if code is not None:
            raise PartError(f"{self.name} ended with code {code}; its log {self.log} ends:\n{self.tail()}")

    def kill(self) -> None:
        """Send SIGKILL to it and everything it started, as the kernel does when memory ends."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def ask_to_end(self) -> None:
        """Send SIGTERM, as a service manager does."""
        if self.running:
            self.process.terminate()

    def stop(self, within_s: float = STOP_S) -> int:
        """Send SIGTERM, and SIGKILL if it does not end in time; return its exit code."""
        self.ask_to_end()
        try:
            return self.process.wait(max(0.0, within_s))
        except subprocess.TimeoutExpired:
            self.kill()
            return self.process.returncode

    def said(self, text: str) -> bool:
        """True if its log contains the text; the log of earlier processes of its name does not count."""
        return text.encode() in self.log.read_bytes()[self._began :]

    def tail(self, size: int = 2000) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-size:]


class Stack:
    """Files and parts of one run in a folder. `close` ends everything."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.landing, self.results = folder / "landing", folder / "results"
        self.parts: dict[str, Part] = {}
        for name in ("log", "ports", "config"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self.broker = RunningBroker(folder / "broker")
        self.enrolment: Enrolment | None = None

    def __enter__(self) -> "Stack":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def enrol(self, groups: Mapping[str, Sequence[str]], ingests: Mapping[str, Sequence[str]] = {}) -> bool:
        """Let only those in who have a certificate: these gateways, by identity with their groups, ingest and publisher;
        and these ingests, by name with their sites.

        Before the broker starts; returns False, and changes nothing, if mosquitto is not installed.
        """
        if self.broker.kind != "mosquitto":
            return False
        self.enrolment = Enrolment(self.folder / "enrolled", self.broker.port, groups, ingests)
        self.broker.secure(self.enrolment.configuration, self.enrolment.context(PUBLISHER))
        return True

    def _tls(self, identity: str) -> dict[str, str]:
        """The files of somebody enrolled, by the names that agents and commands have for them."""
        if self.enrolment is None:
            return {}
        return dict(zip(("ca_file", "cert_file", "key_file"), map(str, self.enrolment.files(identity)), strict=True))

    def close(self) -> None:
        """End all parts, in parallel and within STOP_S together, then the broker."""
        deadline_s = time.monotonic() + STOP_S
        for part in self.parts.values():
            part.ask_to_end()
        for part in self.parts.values():
            part.stop(deadline_s - time.monotonic())
        self.broker.stop()

    def start(self, name: str, command: Sequence[str], stdout: bool = False) -> Part:
        """Start (again) the part of this name."""
        part = self.parts[name] = Part(name, command, self.folder / "log" / f"{name}.log", stdout)
        return part

    def check(self) -> None:
        """Raise PartError if any part has ended by itself."""
        for part in self.parts.values():
            part.check()

    def configure_agent(
        self,
        site: str,
        gateway: str,
        readers: Sequence[Mapping[str, str | int | bool]],
        clock: GatewayClock,
        sim_clock: SimClock,
        resend_s: int = 2,
        more: str = "",
        broker: tuple[str, int] | None = None,
    ) -> Path:
        """Write the agent's configuration; each reader gives the keys of its table.

        `broker`: host and port, instead of those of the stack's broker; `more`: text of further tables.
        """
        host, port = broker or ("127.0.0.1", self.broker.port)
        lines = [
            f'site = "{site}"', f'gateway = "{gateway}"', f'state_dir = "{self.state_dir(gateway)}"',
            "[broker]", f'host = "{host}"', f"port = {port}", f"resend_s = {resend_s}",
            *(f"{key} = {json.dumps(file)}" for key, file in self._tls(identity_of(site, gateway)).items()),
            "[clock]", 'source = "sim"', f"offset_us = {clock.offset_us}", f"drift_ppm = {clock.drift_ppm}",
            f"base_bound_us = {clock.base_bound_us}", f"assumed_drift_ppm = {clock.assumed_drift_ppm}",
            *(f"{key} = {value}" for key, value in sim_clock.as_dict().items()),
            "[heartbeat]", "every_ms = 500",
        ]  # fmt: skip
        for reader in readers:
            lines.append("[[reader]]")
            lines.extend(f"{key} = {json.dumps(value)}" for key, value in reader.items())
        path = self.folder / "config" / f"{gateway}.toml"
        path.write_text("\n".join(lines) + "\n" + more)
        return path

    def state_dir(self, gateway: str) -> Path:
        """Folder in which the agent of a gateway keeps its spool and status."""
        return self.folder / "state" / gateway

    def start_agent(self, gateway: str) -> Part:
        """Start the agent whose configuration was written."""
        config = self.folder / "config" / f"{gateway}.toml"
        return self.start(gateway, [sys.executable, "-m", "whenabouts_edge.cli", "run", "--config", str(config)])

    def start_ingest(self, name: str | None = None, sites: Sequence[str] = ()) -> Part:
        """Start the bridge to the landing; one of several has a name, and the sites that it lands."""
        files = ["--broker", f"127.0.0.1:{self.broker.port}", "--landing", str(self.landing)]
        files += [] if name is None else ["--name", name, *(part for site in sites for part in ("--site", site))]
        tls = self._tls(ingest_identity(name))
        files += [part for key, file in tls.items() for part in (f"--{key.replace('_', '-')}", file)]
        if self.enrolment is not None:
            files += ["--gateways", str(self.enrolment.gateways)]
        part = "ingest" if name is None else f"ingest-{name}"
        return self.start(part, [sys.executable, "-m", "whenabouts_cloud.cli", "ingest", *files])

    def start_job(self, rules: str, *options: str, stdout: bool = True) -> Part:
        """Start the streaming job of some rules; results come as JSON lines on its stdout. Whoever takes it must read it: a
        job waits when some 64 kB are unread.
        """
        path = self.folder / "config" / "rules.wa"
        path.write_text(rules)
        files = ["--landing", str(self.landing), "--rule", str(path), "--out", str(self.results)]
        command = [sys.executable, "-m", "whenabouts_cloud.cli", "run", *files, "--json", *options]
        return self.start("job", command, stdout)

    def start_dashboard(self) -> Part:
        """Start the dashboard of the run on a free port; its first line of JSON has its `address`. Needs the job's rules."""
        self.landing.mkdir(exist_ok=True)
        rules = self.folder / "config" / "rules.wa"
        files = ["--landing", str(self.landing), "--results", str(self.results), "--rule", str(rules)]
        command = [sys.executable, "-m", "whenabouts_cloud.cli", "dashboard", *files, "--port", "0", "--json"]
        return self.start("dashboard", command, stdout=True)

    def job_watches(self) -> bool:
        """True if the job has started and watches the landing."""
        return self.parts["job"].said("Watching")

    def status(self, gateway: str) -> dict[str, Any] | None:
        """The agent's latest status, None before the first."""
        try:
            status: dict[str, Any] = json.loads((self.state_dir(gateway) / "status.json").read_text())
        except FileNotFoundError:
            return None
        return status

    def agent_ready(self, gateway: str) -> bool:
        """True if the running agent reads all its ports and is connected."""
        status, part = self.status(gateway), self.parts.get(gateway)
        if status is None or part is None or status["pid"] != part.process.pid or not status["broker"]["connected"]:
            return False
        return all(reader["state"] in ("reading", "finished") for reader in status["readers"].values())

    def wait(self, what: str, condition: Callable[[], bool], timeout_s: float) -> None:
        """Wait until condition holds; PartError if a part ends or the time is up."""
        deadline_s = time.monotonic() + timeout_s
        while not condition():
            self.check()
            if time.monotonic() > deadline_s:
                raise PartError(f"{what}: not so within {timeout_s:.0f} s; logs are in {self.folder / 'log'}")
            time.sleep(POLL_S)

    def wait_while(self, condition: Callable[[], bool], timeout_s: float) -> None:
        """Wait while condition holds, at most this long; PartError if a part ends."""
        deadline_s = time.monotonic() + timeout_s
        while condition() and time.monotonic() < deadline_s:
            self.check()
            time.sleep(RESULTS_POLL_S)

    def landed(self) -> list[Landed]:
        """Every row of the landing that is a sighting, repeats included, in the order of arrival."""
        rows = sorted(
            self._rows(self.landing, [*_LANDED_COLUMNS, "kind", "landed_us"]), key=lambda row: row["landed_us"]
        )
        return [Landed(*(row[name] for name in _LANDED_COLUMNS)) for row in rows if row["kind"] == "tag"]

    def landed_count(self) -> int:
        """Rows of the landing that are sightings, repeats included."""
        import pyarrow.dataset as ds

        sightings = ds.field("kind") == "tag"
        files = _files(self.landing)
        return int(_landing(files).count_rows(filter=sightings)) if files else 0

    def found_pairs(self) -> list[tuple[ReadingId, ReadingId]]:
        """The two readings of every pair in the results, repeats included."""
        columns = ["a_gateway", "a_boot", "a_seq", "b_gateway", "b_boot", "b_seq"]
        rows = self._rows(self.results / "pairs", columns)
        return [((r["a_gateway"], r["a_boot"], r["a_seq"]), (r["b_gateway"], r["b_boot"], r["b_seq"])) for r in rows]

    def found_matches(self) -> list[tuple[ReadingId, ...]]:
        """The readings of every match in the results, in the order of the pattern, repeats included."""
        rows = self._rows(self.results / "matches", ["events"])
        return [tuple((e["gateway"], e["boot"], e["seq"]) for e in row["events"]) for row in rows]

    def landed_states(self, value: str) -> list[LandedState]:
        """Every row of the landing that begins a state of a group, repeats included, with this value of the state."""
        columns = ["gateway", "boot", "seq", "t_min", "t_max", "landed_us", "kind", "attrs"]
        states = []
        for row in self._rows(self.landing, columns):
            attrs = json.loads(row["attrs"] or "{}") if row["kind"] == "state" else {HEARTBEAT: True}
            if not attrs.get(HEARTBEAT):
                t_min, t_max, landed_us = row["t_min"], row["t_max"], row["landed_us"]
                present = attrs.get(value)
                states.append(LandedState(row["gateway"], row["boot"], row["seq"], t_min, t_max, landed_us, present))
        return states

    def found_verdicts(self) -> list[Detected]:
        """The first state of each run of every verdict in the results, repeats included."""
        rows = self._rows(self.results / "verdicts", ["states"])
        return [tuple((s["gateway"], s["boot"], s["seq"]) for s in row["states"]) for row in rows]

    def group_ready(self, gateways: Sequence[str]) -> bool:
        """True if the agents of these gateways have one view of their group, with all of them in it."""
        groups = [(self.status(gateway) or {}).get("group") or {} for gateway in gateways]
        views = {group.get("view") for group in groups}
        return len(views) == 1 and all(set(group.get("members", ())) == set(gateways) for group in groups)

    def _rows(self, folder: Path, columns: list[str] | None) -> Iterator[dict[str, Any]]:
        if files := _files(folder):
            rows = _landing(files) if folder == self.landing else _dataset(files)
            yield from rows.to_table(columns=columns).to_pylist()


def _files(folder: Path) -> list[str]:
    """Published files of a folder and of the folders in it. Hidden folders come and go while a job runs."""
    return [str(file) for depth in ("", "[!._]*/") for file in folder.glob(f"{depth}[!._]*=*/[!._]*.parquet")]


def _landing(files: list[str]) -> Any:
    from whenabouts_cloud.landing.schema import SCHEMA  # loads pyarrow

    return _dataset(files, SCHEMA)


def _dataset(files: list[str], schema: Any = None) -> Any:
    import pyarrow.dataset as ds  # loads pandas: half a second, and only some runs read the landing

    return ds.dataset(files, schema=schema, format="parquet")


def reader_table(reader: SimReader, port: Path) -> dict[str, str | int | bool]:
    """The configuration of a simulated reader."""
    return {"name": reader.name, "kind": reader.model, "port": str(port), "stream": reader.stream}
