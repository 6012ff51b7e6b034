"""Findings from the facts about a gateway, each fault with a fix. Pure: facts come as values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

WIDE_US = 1_000_000  # above this bound stamps are too wide to order most events
DRIFT_PPM_MIN = 10  # of a crystal without temperature control
CHRONYS_DRIFT_PPM = 1.0  # chrony's default assumption
RESERVE_BYTES = 64 << 20  # space for the rest of the system on the spool's disk
BEGIN_US = 1_735_689_600_000_000  # 2025-01-01: an earlier clock has not been set since the machine started
NEEDS_SUDO = "run it with sudo to see this too"


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked item; a fault has a fix."""

    area: str
    found: str
    fix: str = ""

    @property
    def fine(self) -> bool:
        """True if there is nothing to do."""
        return not self.fix


@dataclass(frozen=True, slots=True)
class UserFacts:
    """The agent's user and its groups: those in the tables, and the actual ones of a running session."""

    name: str
    uid: int
    group_ids: frozenset[int]
    session_ids: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class PathFacts:
    """Owner, group and mode of the target of a path. kind: file, folder, or '' for anything else, such as a device."""

    uid: int
    gid: int
    group: str
    mode: int
    kind: str = ""


@dataclass(frozen=True, slots=True)
class PortFacts:
    """One reader's port. path: None if it does not exist; by_id: links that lead to it; holders: processes that have it
    open, as (process id, name, True if it is our agent); unseen: True if processes of other users could not be
    inspected; modem: name of the modem that the port belongs to.
    """

    reader: str
    port: str
    is_device: bool
    path: PathFacts | None
    by_id: tuple[str, ...]
    others: tuple[str, ...]
    holders: tuple[tuple[int, str, bool], ...]
    unseen: bool
    modem: str = ""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file that the configuration names under key. path: None if it does not exist; above: the parent folders."""

    key: str
    file: str
    path: PathFacts | None
    above: tuple[tuple[str, PathFacts], ...]


@dataclass(frozen=True, slots=True)
class ClockFacts:
    """The clock as the agent sees it, and the services that set it. max_clock_error_ppm: from chrony's configuration,
    None if not set.
    """

    configured: str
    source: str
    state: str
    bound_us: int | None
    now_us: int
    chronyd: bool
    timesyncd: bool
    max_clock_error_ppm: float | None
    rtc: bool


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """The stage that a connection reached: name, connect, tls, mqtt, login or fine."""

    host: str
    port: int
    tls: bool
    username: str | None
    stage: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """folder: state_dir or, if missing, the nearest parent folder. spool: none, fine, in use, damaged, folder or
    unseen.
    """

    state_dir: str
    folder: str
    path: PathFacts
    free_bytes: int
    read_only: bool
    limit_bytes: int
    spool: str
    spool_bytes: int
    quarantined: tuple[str, ...]
    problem: str = ""


def may(user: UserFacts, path: PathFacts, bits: int) -> bool:
    """True if the user has these of rwx (4, 2, 1) by owner, group or others."""
    if user.uid == 0:
        return True
    shift = 6 if user.uid == path.uid else 3 if path.gid in user.group_ids else 0
    return (path.mode >> shift) & bits == bits


def of_port(port: PortFacts, user: UserFacts) -> Iterator[Finding]:
    """Check that the port exists, has a stable name, and is permitted and free."""
    area = f"port {port.reader}"
    if not port.is_device:
        yield Finding(area, f"{port.port} is not a device; not checked")
        return
    if port.path is None:
        there = f"; there are {', '.join(port.others)}" if port.others else "; no serial port exists"
        yield Finding(
            area, f"{port.port} does not exist{there}", "plug the reader in, or correct port in the configuration"
        )
        return
    if port.path.kind:
        yield Finding(area, f"{port.port} is a {port.path.kind}, expected a serial port", "correct port in [[reader]]")
        return
    if port.port.startswith(("/dev/ttyUSB", "/dev/ttyACM")):
        better = (
            f'port = "{port.by_id[0]}"'
            if port.by_id
            else "a link of /dev/serial (`whenabouts-edge install` makes them)"
        )
        yield Finding(
            area, f"{port.port} may be another device after it is plugged in again", f"name it by id: {better}"
        )
    if port.modem:
        yield Finding(
            area, f"{port.port} belongs to a modem, {port.modem}", "correct port: ModemManager must keep its modem"
        )
    if not may(user, port.path, 6):
        group = port.path.group
        fix = f"sudo usermod -aG {group} {user.name}" if group != "root" else "sudo whenabouts-edge install"
        yield Finding(
            area, f"user {user.name} may not use it; it belongs to group {group}", f"{fix}; then log in or start again"
        )
    elif (
        user.session_ids is not None
        and port.path.gid in user.group_ids - user.session_ids
        and not _open_to_all(port.path)
    ):
        fix = "log in again"
        yield Finding(area, f"user {user.name} joined group {port.path.group} after this session began", fix)
    strangers = [f"{name} ({pid})" for pid, name, ours in port.holders if not ours]
    if strangers:
        probed = any("ModemManager" in stranger for stranger in strangers)
        known = "sudo whenabouts-edge install: its rule keeps ModemManager from this port" if probed else "end it"
        yield Finding(area, f"{port.port} is open in {', '.join(strangers)}", known)
    elif any(ours for _, _, ours in port.holders):
        yield Finding(area, f"{port.port} exists, the agent has it open")
    else:
        yield Finding(
            area,
            f"{port.port} exists" + (f", unknown which program has it open: {NEEDS_SUDO}" if port.unseen else ", free"),
        )


def of_network(reader: str, port: str, state: str, problem: str) -> Finding:
    """A reader on the network: as the running agent sees it, or as its greeting shows. state: "" if nobody has asked."""
    area = f"reader {reader}"
    if problem:
        return Finding(area, problem, "correct the reader's table in the configuration, or see to the reader")
    return Finding(area, f"{port}, {state}" if state else f"{port}; not checked, as the agent does not run")


def of_modems(modems: Mapping[str, str], managed: bool) -> Iterator[Finding]:
    """Name the modems. modems: name by port; managed: ModemManager runs."""
    for name in sorted(set(modems.values())):
        held = sorted(port for port, modem in modems.items() if modem == name)
        by = "left to ModemManager" if managed else "ModemManager does not run"
        yield Finding("modem", f"{name} at {', '.join(held)}; {by}")


def of_user(user: UserFacts, group: str, gid: int | None) -> Finding:
    """Check that the agent's user is in the group of serial ports."""
    if gid is None:
        return Finding("user", f"{user.name}; this system has no group {group}")
    if user.uid == 0 or gid in user.group_ids:
        return Finding("user", f"{user.name}, may use ports of group {group}")
    fix = f"sudo usermod -aG {group} {user.name}; then log in or start the agent again"
    return Finding("user", f"{user.name} is not in group {group}, which owns serial ports", fix)


def of_file(file: FileFacts, user: UserFacts) -> Finding:
    """Check that the agent can read the file; a password file is often unreadable for everybody, the agent included."""
    closed = next((folder for folder, path in file.above if not may(user, path, 1)), None)
    if closed is not None:
        return Finding(
            "files", f"{file.key}: user {user.name} may not enter {closed}", f"move {file.file} to /etc/whenabouts"
        )
    if file.path is None:
        return Finding("files", f"{file.key}: {file.file} does not exist", f"create it, or correct {file.key}")
    if file.path.kind == "folder":
        return Finding("files", f"{file.key}: {file.file} is a folder, expected a file", f"correct {file.key}")
    if not may(user, file.path, 4):
        fix = f"sudo chgrp {user.name} {file.file}; sudo chmod 640 {file.file}"
        return Finding("files", f"{file.key}: user {user.name} may not read {file.file}", fix)
    return Finding("files", f"{file.key}: {file.file} can be read")


def of_clock(clock: ClockFacts) -> Iterator[Finding]:
    """Check that the bound is known, narrow and true."""
    install_chrony = "sudo apt install chrony"
    bound = "unknown" if clock.bound_us is None else f"{clock.bound_us / 1000:.1f} ms"
    if clock.configured == "sim":
        yield Finding("clock", "the time is simulated", 'set source = "auto" in [clock]')
    elif clock.now_us < BEGIN_US:
        yield Finding(
            "clock", "it has not been set since the machine started", f"connect it to a time server; {install_chrony}"
        )
    elif clock.bound_us is None:
        fix = (
            "see `chronyc sources`"
            if clock.chronyd
            else "see `timedatectl timesync-status`"
            if clock.timesyncd
            else install_chrony
        )
        yield Finding("clock", f"{clock.state}: no source knows its bound; stamps match nothing", fix)
    elif clock.bound_us > WIDE_US:
        fix = "name a nearer time server; see `chronyc sources -v`" if clock.chronyd else install_chrony
        yield Finding("clock", f"{clock.state} by {clock.source}, bound {bound}: stamps are wide", fix)
    elif clock.state == "free-running":
        fix = "check that the time server can be reached"
        yield Finding("clock", f"free-running by {clock.source}, bound {bound} and growing", fix)
    else:
        hint = "; chrony would give a narrower bound" if clock.source == "timesyncd" else ""
        yield Finding("clock", f"{clock.state} by {clock.source or clock.configured}, bound {bound}{hint}")
    yield from _traps(clock)


def _traps(clock: ClockFacts) -> Iterator[Finding]:
    """Configurations that make a bound false without a symptom."""
    if clock.chronyd and clock.timesyncd:
        yield Finding(
            "clock", "chronyd and systemd-timesyncd both set it", "sudo systemctl disable --now systemd-timesyncd"
        )
    if clock.configured == "adjtimex" and not clock.chronyd:
        problem = "adjtimex is a bound only under chronyd; systemd-timesyncd sets the kernel's value to 0"
        yield Finding("clock", problem, 'sudo apt install chrony, or set source = "auto" in [clock]')
    drift_ppm = CHRONYS_DRIFT_PPM if clock.max_clock_error_ppm is None else clock.max_clock_error_ppm
    if clock.chronyd and clock.configured != "fixed" and drift_ppm < DRIFT_PPM_MIN:
        problem = f"chrony assumes a drift of {drift_ppm:g} ppm (maxclockerror); a usual crystal has up to 50"
        fix = "echo 'maxclockerror 50' | sudo tee /etc/chrony/conf.d/whenabouts.conf; sudo systemctl restart chrony"
        yield Finding("clock", problem, fix)
    if not clock.rtc and clock.configured == "fixed":
        problem = "without a battery-backed clock this machine starts in the past, and source fixed trusts it at once"
        yield Finding("boot", problem, 'set source = "auto" in [clock], or fit an RTC module')
    elif not clock.rtc:
        problem = (
            "no battery-backed clock: readings after a start wait in memory, up to an hour, until the time is known"
        )
        yield Finding("boot", problem)
    else:
        yield Finding("boot", "a battery-backed clock keeps time while the power is off")


def of_broker(broker: BrokerFacts) -> Finding:
    """The stage that the connection to the broker reached."""
    place = f"{broker.host}:{broker.port}"
    fixes = {
        "name": "correct host in [broker], or check that the network is up (`resolvectl query` asks as the agent does)",
        "connect": "check that the broker runs, listens beyond localhost, and that no firewall is in between",
        "tls": "give the certificate of the broker's authority as ca_file; host must be the name in the certificate",
        "mqtt": "check that this port speaks MQTT; with TLS, as usual on 8883, it needs ca_file in [broker]",
        "login": "set username and password_file in [broker] to those of the broker",
    }
    if broker.stage == "fine":
        how = ("TLS" if broker.tls else "no TLS") + (
            f", as {broker.username}" if broker.username else ", without a name"
        )
        return Finding("broker", f"{place} answers ({how})")
    return Finding("broker", f"{place}: {broker.problem}", fixes[broker.stage])


def of_disk(disk: DiskFacts, user: UserFacts) -> Iterator[Finding]:
    """Check that the spool is writable, has room and is intact."""
    missing = disk.folder != disk.state_dir
    if disk.path.kind == "file":
        yield Finding("disk", f"{disk.folder} is a file, expected a folder", "correct state_dir, or move the file away")
    elif disk.read_only:
        yield Finding(
            "disk", f"{disk.folder} is on a disk that is mounted read-only", "sudo mount -o remount,rw; see `dmesg`"
        )
    elif not may(user, disk.path, 3):
        fix = f"sudo install -d -m 700 -o {user.name} {disk.state_dir}"
        fix = fix if missing else f"sudo chown -R {user.name} {disk.state_dir}"
        yield Finding("disk", f"user {user.name} may not write to {disk.folder}", fix)
    elif missing:
        yield Finding("disk", f"{disk.state_dir} does not exist yet; the agent will create it")
    else:
        yield Finding("disk", f"{disk.state_dir} is writable")
    needed = max(0, disk.limit_bytes - disk.spool_bytes) + RESERVE_BYTES
    room = (
        f"{disk.free_bytes >> 20} MiB free, the spool may take {max(0, disk.limit_bytes - disk.spool_bytes) >> 20} more"
    )
    yield Finding("disk", room, "" if disk.free_bytes >= needed else "free space, or lower limit_mib in [spool]")
    spool = f"{disk.state_dir}/spool.sqlite"
    reported = {
        "none": Finding("spool", f"{spool} does not exist yet"),
        "fine": Finding("spool", f"{spool} is intact"),
        "in use": Finding("spool", f"{spool} is in use by the agent, which checked it at its start"),
        "folder": Finding("spool", f"{spool} is a folder, expected a file", "move it away"),
        "unseen": Finding("spool", f"{spool} cannot be read by this user; {NEEDS_SUDO}"),
        "damaged": Finding(
            "spool", f"{spool}: {disk.problem}", "start the agent: it renames the file and begins a new one"
        ),
    }
    yield reported[disk.spool]
    if disk.quarantined:
        problem = f"damaged spools were kept: {', '.join(disk.quarantined)}"
        fix = "save the output of `sqlite3 FILE .recover`, then remove them; a worn card is a usual cause"
        yield Finding("spool", problem, fix)


def needs_a_look(findings: Sequence[Finding]) -> list[Finding]:
    """The findings with a fix."""
    return [finding for finding in findings if not finding.fine]


def _open_to_all(path: PathFacts) -> bool:
    return path.mode & 6 == 6
