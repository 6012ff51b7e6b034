"""What a gateway's facts mean: findings with a fix beside each. Facts come as values; nothing is looked up here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

WIDE_US = 1_000_000  # a bound beyond this makes stamps that hardly order anything
DRIFT_PPM_MIN = 10  # of a crystal without temperature control
CHRONYS_DRIFT_PPM = 1.0  # what chrony assumes unless told
RESERVE_BYTES = 64 << 20  # what the rest of the system needs on the spool's disk
BEGIN_US = 1_735_689_600_000_000  # 2025-01-01: an earlier clock has not been set since the machine started
NEEDS_SUDO = "run it with sudo to see this too"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; what needs a look has a fix."""

    area: str
    found: str
    fix: str = ""

    @property
    def fine(self) -> bool:
        """Nothing to do."""
        return not self.fix


@dataclass(frozen=True, slots=True)
class UserFacts:
    """Whom the agent runs as, and its groups: those in the tables, and of a running session those it really has."""

    name: str
    uid: int
    group_ids: frozenset[int]
    session_ids: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class PathFacts:
    """Owner, group and mode of what a path leads to. kind: file, folder, or '' for anything else, such as a device."""

    uid: int
    gid: int
    group: str
    mode: int
    kind: str = ""


@dataclass(frozen=True, slots=True)
class PortFacts:
    """One reader's port. path: None when it is not there; by_id: links that lead to it; holders: who has it open, as
    (process id, name, whether it is our agent); unseen: processes of others that could not be looked at.
    """

    reader: str
    port: str
    is_device: bool
    path: PathFacts | None
    by_id: tuple[str, ...]
    others: tuple[str, ...]
    holders: tuple[tuple[int, str, bool], ...]
    unseen: bool


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file that the configuration names under key. path: None when it is not there; above: the folders on the way."""

    key: str
    file: str
    path: PathFacts | None
    above: tuple[tuple[str, PathFacts], ...]


@dataclass(frozen=True, slots=True)
class ClockFacts:
    """The clock as the agent sees it, and what keeps it. max_clock_error_ppm: of chrony's configuration, None unless set."""

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
    """How far a connection came. stage: name, connect, tls, mqtt, login or fine."""

    host: str
    port: int
    tls: bool
    username: str | None
    stage: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """state_dir or, where it is missing, the nearest folder above. spool: none, fine, in use,
    damaged, folder or unseen."""

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
    """Whether the user has these of rwx (4, 2, 1) by owner, group or others."""
    if user.uid == 0:
        return True
    shift = 6 if user.uid == path.uid else 3 if path.gid in user.group_ids else 0
    return (path.mode >> shift) & bits == bits


def of_port(port: PortFacts, user: UserFacts) -> Iterator[Finding]:
    """Is it there, named so that it stays the same, permitted, and free."""
    area = f"port {port.reader}"
    if not port.is_device:
        yield Finding(area, f"{port.port} is no device; not looked at")
        return
    if port.path is None:
        there = f"; there are {', '.join(port.others)}" if port.others else "; no serial port is there"
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
        yield Finding(area, f"{port.port} may be another device after the next plugging", f"name it by id: {better}")
    if not may(user, port.path, 6):
        group = port.path.group
        fix = f"sudo usermod -aG {group} {user.name}" if group != "root" else "sudo whenabouts-edge install"
        yield Finding(
            area, f"user {user.name} may not use it, it belongs to group {group}", f"{fix}; then log in or start again"
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
        known = "sudo systemctl disable --now ModemManager" if any("ModemManager" in s for s in strangers) else "end it"
        yield Finding(area, f"{port.port} is open in {', '.join(strangers)}", known)
    elif any(ours for _, _, ours in port.holders):
        yield Finding(area, f"{port.port} is there, the agent has it open")
    else:
        yield Finding(
            area,
            f"{port.port} is there" + (f", who has it open is not known: {NEEDS_SUDO}" if port.unseen else ", free"),
        )


def of_user(user: UserFacts, group: str, gid: int | None) -> Finding:
    """Whether the agent's user is in the group of serial ports."""
    if gid is None:
        return Finding("user", f"{user.name}; this system has no group {group}")
    if user.uid == 0 or gid in user.group_ids:
        return Finding("user", f"{user.name}, may use ports of group {group}")
    fix = f"sudo usermod -aG {group} {user.name}; then log in or start the agent again"
    return Finding("user", f"{user.name} is not in group {group}, which owns serial ports", fix)


def of_file(file: FileFacts, user: UserFacts) -> Finding:
    """Whether the agent can read it; a password is usually kept from everybody, the agent included."""
    closed = next((folder for folder, path in file.above if not may(user, path, 1)), None)
    if closed is not None:
        return Finding(
            "files", f"{file.key}: user {user.name} may not enter {closed}", f"move {file.file} to /etc/whenabouts"
        )
    if file.path is None:
        return Finding("files", f"{file.key}: {file.file} does not exist", f"make it, or correct {file.key}")
    if file.path.kind == "folder":
        return Finding("files", f"{file.key}: {file.file} is a folder, expected a file", f"correct {file.key}")
    if not may(user, file.path, 4):
        fix = f"sudo chgrp {user.name} {file.file}; sudo chmod 640 {file.file}"
        return Finding("files", f"{file.key}: user {user.name} may not read {file.file}", fix)
    return Finding("files", f"{file.key}: {file.file} can be read")


def of_clock(clock: ClockFacts) -> Iterator[Finding]:
    """Whether the bound is known, narrow and true."""
    install_chrony = "sudo apt install chrony"
    bound = "unknown" if clock.bound_us is None else f"{clock.bound_us / 1000:.1f} ms"
    if clock.configured == "sim":
        yield Finding("clock", "the time is a simulated one", 'set source = "auto" in [clock]')
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
        yield Finding("clock", f"{clock.state}: no source knows how wrong it can be; stamps match nothing", fix)
    elif clock.bound_us > WIDE_US:
        fix = "name a nearer time server; see `chronyc sources -v`" if clock.chronyd else install_chrony
        yield Finding("clock", f"{clock.state} by {clock.source}, bound {bound}: stamps are wide", fix)
    elif clock.state == "free-running":
        fix = "see that the time server can be reached"
        yield Finding("clock", f"free-running by {clock.source}, bound {bound} and growing", fix)
    else:
        hint = "; chrony would know it better" if clock.source == "timesyncd" else ""
        yield Finding("clock", f"{clock.state} by {clock.source or clock.configured}, bound {bound}{hint}")
    yield from _traps(clock)


def _traps(clock: ClockFacts) -> Iterator[Finding]:
    """What makes a bound false without showing."""
    if clock.chronyd and clock.timesyncd:
        yield Finding(
            "clock", "chronyd and systemd-timesyncd both set it", "sudo systemctl disable --now systemd-timesyncd"
        )
    if clock.configured == "adjtimex" and not clock.chronyd:
        problem = "adjtimex is a bound only under chronyd; systemd-timesyncd tells the kernel 0"
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
    """How far one gets."""
    place = f"{broker.host}:{broker.port}"
    fixes = {
        "name": "correct host in [broker], or see that the network is up (`resolvectl query` asks as the agent does)",
        "connect": "see that the broker runs, listens beyond localhost, and that no firewall stands between",
        "tls": "give the certificate of the broker's authority as ca_file; host must be the name in the certificate",
        "mqtt": "see that this port speaks MQTT; with TLS, as usual on 8883, it needs ca_file in [broker]",
        "login": "set username and password_file in [broker] as the broker knows them",
    }
    if broker.stage == "fine":
        how = ("TLS" if broker.tls else "no TLS") + (
            f", as {broker.username}" if broker.username else ", without a name"
        )
        return Finding("broker", f"{place} answers ({how})")
    return Finding("broker", f"{place}: {broker.problem}", fixes[broker.stage])


def of_disk(disk: DiskFacts, user: UserFacts) -> Iterator[Finding]:
    """Whether the spool can be written, has room and is whole."""
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
        yield Finding("disk", f"{disk.state_dir} is not there yet; the agent will make it")
    else:
        yield Finding("disk", f"{disk.state_dir} is writable")
    needed = max(0, disk.limit_bytes - disk.spool_bytes) + RESERVE_BYTES
    room = (
        f"{disk.free_bytes >> 20} MiB free, the spool may take {max(0, disk.limit_bytes - disk.spool_bytes) >> 20} more"
    )
    yield Finding("disk", room, "" if disk.free_bytes >= needed else "free space, or lower limit_mib in [spool]")
    spool = f"{disk.state_dir}/spool.sqlite"
    reported = {
        "none": Finding("spool", f"{spool} is not there yet"),
        "fine": Finding("spool", f"{spool} is whole"),
        "in use": Finding("spool", f"{spool} is in use by the agent, which checked it at its start"),
        "folder": Finding("spool", f"{spool} is a folder, expected a file", "move it away"),
        "unseen": Finding("spool", f"{spool} cannot be read by this user; {NEEDS_SUDO}"),
        "damaged": Finding(
            "spool", f"{spool}: {disk.problem}", "start the agent: it sets the file aside and begins a new one"
        ),
    }
    yield reported[disk.spool]
    if disk.quarantined:
        problem = f"damaged spools were set aside: {', '.join(disk.quarantined)}"
        fix = "save what `sqlite3 FILE .recover` finds, then remove them; a worn card is a usual cause"
        yield Finding("spool", problem, fix)


def needs_a_look(findings: Sequence[Finding]) -> list[Finding]:
    """Those that have a fix."""
    return [finding for finding in findings if not finding.fine]


def _open_to_all(path: PathFacts) -> bool:
    return path.mode & 6 == 6
