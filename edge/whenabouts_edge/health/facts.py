"""Collects the facts for the findings: devices, users, services, the broker's answer, the disk.

Changes nothing, and opens no serial port: opening one resets many boards. It logs in at the broker under a different client
name, so that a running agent keeps its connection.
"""

import contextlib
import glob
import grp
import os
import pwd
import socket
import sqlite3
import ssl
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
import serial.tools.list_ports
from paho.mqtt.enums import CallbackAPIVersion

from whenabouts_edge.clock.choose import clock_source
from whenabouts_edge.clock.kernel import CHRONYD_PIDS
from whenabouts_edge.config.settings import BrokerConfig, Config, ReaderConfig
from whenabouts_edge.health.findings import (
    BrokerFacts,
    ClockFacts,
    DiskFacts,
    FileFacts,
    PathFacts,
    PortFacts,
    UserFacts,
)
from whenabouts_edge.mqtt_client import secure, stop_loop
from whenabouts_edge.readers.port import PortError
from whenabouts_edge.readers.tcp import open_tcp
from whenabouts_edge.uplink import certificate
from whenabouts_hardware.network.llrp_decoder import LlrpDecoder
from whenabouts_hardware.network.llrp_dialogue import LlrpDialogue

BROKER_TIMEOUT_S = 5.0
CHRONY_FILES = ("/etc/chrony/chrony.conf", "/etc/chrony.conf", "/etc/chrony/conf.d/*.conf", "/etc/chrony.d/*.conf")


def user(name: str | None) -> UserFacts:
    """The user of this name, or the user of this process."""
    entry = None
    if name is not None:
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
    session = None
    if entry is None or entry.pw_uid == os.geteuid():
        session = frozenset({*os.getgroups(), os.getegid()})
        try:
            entry = pwd.getpwuid(os.geteuid())
        except KeyError:  # a user number without a name, as in a container
            return UserFacts(str(os.geteuid()), os.geteuid(), session)
    listed = frozenset(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return UserFacts(entry.pw_name, entry.pw_uid, listed | (session or frozenset()), session)


def group_id(name: str) -> int | None:
    """The number of a group, None if it does not exist."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return None


def ports(readers: tuple[ReaderConfig, ...], agent_pid: int | None) -> Iterator[PortFacts]:
    """Each reader's port. agent_pid: the process of the running agent, which may have them open."""
    links = {link: os.path.realpath(link) for link in sorted(glob.glob("/dev/serial/by-id/*"))}
    others = tuple(sorted(port.device for port in serial.tools.list_ports.comports()))
    with_modem = modems(serial.tools.list_ports.comports())
    real = {reader.port: os.path.realpath(reader.port) for reader in readers if "://" not in reader.port}
    holders, unseen = _holders(set(real.values()))
    for reader in readers:
        path = real.get(reader.port, "")
        yield PortFacts(
            reader=reader.name,
            port=reader.port,
            is_device=bool(path),
            path=_path(path) if path else None,
            by_id=tuple(link for link, target in links.items() if target == path),
            others=others,
            holders=tuple((pid, _process_name(pid), pid == agent_pid) for pid in holders.get(path, ())),
            unseen=unseen,
            modem=with_modem.get(path, ""),
        )


def llrp_problem(url: str) -> str:
    """Why no LLRP reader answers there, "" if one does: connects, waits for its greeting, and ends the connection."""
    dialogue, decoder = LlrpDialogue({}), LlrpDecoder()
    try:
        with open_tcp(url) as port:
            while not dialogue.fault and not dialogue.greeted:
                now_us = time.monotonic_ns() // 1000
                dialogue.due(now_us)
                chunk = port.read()
                for frame in decoder.feed(chunk.data) if chunk else ():
                    dialogue.heard(frame, now_us)
    except PortError as error:
        return str(error)
    return dialogue.fault


def modems(found: Iterable[Any]) -> dict[str, str]:
    """The modem's name by serial port. found: ports as pyserial lists them.

    A modem's USB device has, beside serial ports, a control channel or a network interface.
    """
    named = {}
    for port in found:
        folder = getattr(port, "usb_device_path", None)
        if folder and any(glob.glob(f"{glob.escape(folder)}/*/{beside}") for beside in ("usbmisc/cdc-wdm*", "net/ww*")):
            named[port.device] = port.product or port.description or "unnamed"
    return named


def is_modem_managed() -> bool:
    """True if ModemManager runs."""
    return any(_process_name(pid) == "ModemManager" for pid in _processes())


def files(config: Config) -> Iterator[FileFacts]:
    """Every file that the agent reads."""
    keys = ("password_file", "ca_file", "cert_file", "key_file")
    named = [*((key, getattr(config.broker, key)) for key in keys), ("rules_file", config.rules_file)]
    for key, name in [*named, *(("token_file", reader.token_file) for reader in config.readers)]:
        if name is not None:
            file = Path(name).absolute()
            above = [(str(folder), _path(str(folder))) for folder in reversed(file.parents)]
            known = tuple((folder, path) for folder, path in above if path is not None)
            yield FileFacts(key, str(file), _path(str(file)), known)


def certificates(config: BrokerConfig) -> list[tuple[str, str, int]]:
    """(key, file, end in seconds since 1970) of the gateway's certificate, and of its authority if there is only one.

    Those that cannot be read are left out: the file, and the connection, are checked elsewhere.
    """
    found = []
    for key, file in (("cert_file", config.cert_file), ("ca_file", config.ca_file)):
        with contextlib.suppress(OSError, ValueError):
            ends = certificate.ends(file) if file else []
            if file and (key == "cert_file" or len(ends) == 1):
                found.append((key, file, ends[0]))
    return found


def clock(table: dict[str, Any]) -> ClockFacts:
    """The clock as the agent sees it."""
    sample = clock_source(table).sample()
    return ClockFacts(
        configured=table["source"],
        source=sample.source,
        state=sample.state,
        bound_us=sample.bound_us,
        now_us=time.time_ns() // 1000,
        chronyd=any(_lives(path) for path in CHRONYD_PIDS),
        timesyncd=any(_process_name(pid) == "systemd-timesyn" for pid in _processes()),  # cut at 15 characters
        max_clock_error_ppm=max_clock_error_ppm(_texts(CHRONY_FILES)),
        rtc=bool(glob.glob("/sys/class/rtc/rtc*")),
    )


def max_clock_error_ppm(texts: list[str]) -> float | None:
    """chrony's maxclockerror from its configuration files; the last setting counts."""
    error_ppm = None
    for line in "\n".join(texts).splitlines():
        words = line.split()
        if len(words) == 2 and words[0].lower() == "maxclockerror":
            with contextlib.suppress(ValueError):
                error_ppm = float(words[1])
    return error_ppm


def broker(config: BrokerConfig, timeout_s: float = BROKER_TIMEOUT_S) -> BrokerFacts:
    """Connect and log in once."""

    def reported(stage: str, problem: object = "") -> BrokerFacts:
        return BrokerFacts(config.host, config.port, config.tls, config.username, stage, str(problem))

    client = mqtt.Client(
        CallbackAPIVersion.VERSION2, f"{config.client_id}-doctor", protocol=mqtt.MQTTv311, reconnect_on_failure=False
    )
    client.connect_timeout = timeout_s
    answered, reasons = threading.Event(), list[Any]()

    def on_connect(_c: Any, _u: Any, _f: Any, reason: Any, _p: Any) -> None:
        reasons.append(reason)
        answered.set()

    client.on_connect, client.on_disconnect = on_connect, lambda *_: answered.set()
    try:
        secure(client, config)
    except ssl.SSLError as error:
        return reported("tls", f"ca_file, cert_file or key_file: {error}")
    except (OSError, ValueError) as error:
        return reported("login" if config.password_file and config.password_file in str(error) else "tls", error)
    try:
        client.connect(config.host, config.port)
        client.loop_start()
        answered.wait(timeout_s)
    except socket.gaierror as error:
        return reported("name", f"unknown name ({error.strerror})")
    except ssl.SSLError as error:
        return reported("tls", getattr(error, "verify_message", "") or error.reason or error)
    except OSError as error:
        return reported("connect", str(error) or f"no answer within {timeout_s:.0f} s")
    finally:
        client.disconnect()
        stop_loop(client)
    if not reasons:
        return reported("mqtt", "no answer to MQTT's greeting")
    return reported("login", f"refused: {reasons[0]}") if reasons[0].is_failure else reported("fine")


def disk(config: Config, agent_pid: int | None) -> DiskFacts:
    """The folder of the spool, its disk, and the integrity of the spool unless the agent has it open."""
    state_dir = Path(config.state_dir)
    folder = next(path for path in (state_dir, *state_dir.parents) if _path(str(path)) is not None)
    path = _path(str(folder))
    assert path is not None
    room = os.statvfs(folder)
    spool, size, problem = _spool(state_dir / "spool.sqlite", agent_pid)
    quarantined: list[str] = []
    with contextlib.suppress(OSError):
        quarantined = sorted(p.name for p in state_dir.glob("spool.sqlite.damaged-*") if p.suffix[-1].isdigit())
    return DiskFacts(
        state_dir=str(state_dir),
        folder=str(folder),
        path=path,
        free_bytes=room.f_bavail * room.f_frsize,
        read_only=bool(room.f_flag & os.ST_RDONLY),
        limit_bytes=config.spool_limit_bytes,
        spool=spool,
        spool_bytes=size,
        quarantined=tuple(quarantined),
        problem=problem,
    )


def _spool(path: Path, agent_pid: int | None) -> tuple[str, int, str]:
    """(state, size of the file in bytes, problem)."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return "none", 0, ""
    except OSError:
        return "unseen", 0, ""
    if path.is_dir():
        return "folder", 0, ""
    if agent_pid is not None:
        return "in use", size, ""
    if not os.access(path, os.R_OK):
        return "unseen", size, ""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=1.0)) as db:
            said = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.OperationalError as error:
        return ("in use", size, "") if "locked" in str(error) else ("unseen", size, str(error))
    except sqlite3.DatabaseError as error:
        return "damaged", size, str(error)
    return ("fine", size, "") if said == "ok" else ("damaged", size, said)


def _path(path: str) -> PathFacts | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    try:
        group = grp.getgrgid(status.st_gid).gr_name
    except KeyError:
        group = str(status.st_gid)
    kind = "file" if stat.S_ISREG(status.st_mode) else "folder" if stat.S_ISDIR(status.st_mode) else ""
    return PathFacts(status.st_uid, status.st_gid, group, stat.S_IMODE(status.st_mode), kind)


def _holders(paths: set[str]) -> tuple[dict[str, list[int]], bool]:
    """(processes by the path that they have open, True if some processes could not be inspected)."""
    holders: dict[str, list[int]] = {}
    unseen = False
    for pid in _processes():
        try:
            targets = {os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")}
        except PermissionError:
            unseen = True
        except OSError:  # it has ended in the meantime
            continue
        else:
            for path in paths & targets:
                holders.setdefault(path, []).append(pid)
    return holders, unseen


def _processes() -> list[int]:
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def _process_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "?"


def _lives(pid_file: Path, exists: Callable[[str], bool] = os.path.exists) -> bool:
    try:
        return exists(f"/proc/{int(pid_file.read_text())}")
    except (OSError, ValueError):
        return False


def _texts(patterns: tuple[str, ...]) -> list[str]:
    texts = []
    for path in [path for pattern in patterns for path in sorted(glob.glob(pattern))]:
        with contextlib.suppress(OSError):
            texts.append(Path(path).read_text(errors="replace"))
    return texts
