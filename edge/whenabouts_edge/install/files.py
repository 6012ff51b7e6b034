"""The files of the agent's service: unit, rule for serial ports, user.

The unit permits only what the agent uses. Permitted on purpose: AF_UNIX (to ask the time service and the service
manager), reading the kernel's clock (adjtimex; setting it needs a capability that the unit does not give) and the list
of processes (to see if chronyd runs). MemoryMax is about seven times the memory of an idle agent with four readers.

The rule makes by-id links itself, for every port: systemd's own rule lost them in some releases, such as Debian 12's first.
For the ports of the configuration only, it keeps ModemManager from writing to them and reduces FTDI's wait of 16 ms to 1:
a modem stays a modem. systemd.exec(5), systemd.service(5), sysusers.d(5), tmpfiles.d(5), udev(7).
"""

import re
from collections.abc import Sequence

UNIT_NAME = "whenabouts-edge.service"
MARK = "# Written by `whenabouts-edge install`"  # begins each of these files
USER_COMMENT = "Whenabouts agent"  # marks a user that was created here
PORT_GROUP = "dialout"
WATCHDOG_S = 30
DEVICES = ("ttyUSB", "ttyACM", "ttyAMA", "ttyS")  # the kernel's driver names, valid without a port
_OF_THOSE = ("/dev/serial", *(f"/dev/{name}" for name in DEVICES))

_UNIT = """\
{mark}. Changes belong into `systemctl edit {name}`.
[Unit]
Description=Whenabouts agent: readings with the interval that contains their time
Documentation=man:systemd.service(5)
RequiresMountsFor={state_dir}
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
User={user}
SupplementaryGroups={group}
{state}
UMask=0077
Restart=always
RestartSec=2
RestartPreventExitStatus=2
WatchdogSec={watchdog_s}
TimeoutStartSec=5min
TimeoutStopSec=30
MemoryMax=256M
TasksMax=256

DevicePolicy=closed
{devices}
CapabilityBoundingSet=
NoNewPrivileges=true
ProtectSystem=strict
ProtectHome=true
PrivateTmp=true
PrivateMounts=true
ProtectControlGroups=true
ProtectHostname=true
ProtectKernelLogs=true
ProtectKernelModules=true
ProtectKernelTunables=true
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=true
RestrictRealtime=true
RestrictSUIDSGID=true
RemoveIPC=true
KeyringMode=private
LockPersonality=true
MemoryDenyWriteExecute=true
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallFilter=adjtimex clock_adjtime
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
"""

_BY_ID = "serial/by-id/$env{ID_BUS}-$env{ID_SERIAL}-if$env{ID_USB_INTERFACE_NUM}"
_RULE = f"""\
{MARK}: serial ports by id, and those of the configured readers for group {PORT_GROUP}.
ACTION=="remove", GOTO="whenabouts_end"
SUBSYSTEM!="tty", GOTO="whenabouts_end"
KERNEL!="ttyUSB[0-9]*|ttyACM[0-9]*", GOTO="whenabouts_end"
IMPORT{{builtin}}="usb_id"
IMPORT{{builtin}}="path_id"
SUBSYSTEMS=="usb-serial", ENV{{.ID_PORT}}="$attr{{port_number}}"
ENV{{ID_SERIAL}}=="?*", ENV{{.ID_PORT}}=="", SYMLINK+="{_BY_ID}"
ENV{{ID_SERIAL}}=="?*", ENV{{.ID_PORT}}=="?*", SYMLINK+="{_BY_ID}-port$env{{.ID_PORT}}"
%s\
ENV{{.WHENABOUTS_READER}}!="1", GOTO="whenabouts_end"
GROUP="{PORT_GROUP}", MODE="0660", ENV{{ID_MM_PORT_IGNORE}}="1"
DRIVERS=="ftdi_sio", ATTR{{device/latency_timer}}="1"
LABEL="whenabouts_end"
"""
_LITERAL = re.compile(r"[\w.:#+=@,-]+", re.ASCII)  # means itself in a rule
_OF_ID = re.compile(r"/dev/serial/by-id/\w+?-(?P<serial>.+)-if(?P<interface>[0-9a-f]{2})(?:-port(?P<port>\d+))?")
_OF_PATH = re.compile(r"/dev/serial/by-path/(?P<path>.+?)(?:-port(?P<port>\d+))?")


def udev_rule(ports: Sequence[str]) -> str:
    """The rule for serial ports; ports are those of the configured readers, as the configuration names them."""
    matches = sorted({match for port in ports if (match := _match(port))})
    return _RULE % "".join(f'{match}, ENV{{.WHENABOUTS_READER}}="1"\n' for match in matches)


def _match(port: str) -> str:
    """The condition of a rule for one port, '' for a port that no rule of this kind can name."""
    if of_id := _OF_ID.fullmatch(port):
        wanted = {
            "ID_SERIAL": of_id["serial"],
            "ID_USB_INTERFACE_NUM": of_id["interface"],
            ".ID_PORT": of_id["port"] or "",
        }
    elif of_path := _OF_PATH.fullmatch(port):
        wanted = {"ID_PATH": of_path["path"], ".ID_PORT": of_path["port"] or ""}
    else:
        name = port.removeprefix("/dev/")
        return f'KERNEL=="{name}"' if name.startswith(("ttyUSB", "ttyACM")) and _LITERAL.fullmatch(name) else ""
    if not all(_LITERAL.fullmatch(value) for value in wanted.values() if value):
        return ""
    return ", ".join(f'ENV{{{key}}}=="{value}"' for key, value in wanted.items())


def unit(command: Sequence[str], user: str, state_dir: str, ports: Sequence[str], writes: Sequence[str] = ()) -> str:
    """The unit that runs command as user; ports are those of the configuration, writes are further folders it writes
    to.
    """
    managed = state_directory(state_dir)
    state = (
        [f"StateDirectory={managed}", "StateDirectoryMode=0700"] if managed else [f"ReadWritePaths={_word(state_dir)}"]
    )
    state += [f"ReadWritePaths={_word('-' + folder)}" for folder in writes]  # a missing folder is ignored
    others = sorted({port for port in ports if port.startswith("/dev/") and not port.startswith(_OF_THOSE)})
    devices = [*(f"char-{name}" for name in DEVICES), *others]
    return _UNIT.format(
        mark=MARK,
        name=UNIT_NAME,
        state_dir=_word(state_dir),
        command=" ".join(_word(word).replace("$", "$$") for word in command),
        user=user,
        group=PORT_GROUP,
        state="\n".join(state),
        watchdog_s=WATCHDOG_S,
        devices="\n".join(f"DeviceAllow={device} rw" for device in devices),
    )


def state_directory(state_dir: str) -> str | None:
    """The value of StateDirectory= for this folder, None if the service manager cannot create it."""
    name = state_dir.removeprefix("/var/lib/").strip("/")
    plain = all(c.isascii() and (c.isalnum() or c in "/_.-") for c in name) and ".." not in name
    return name if state_dir.startswith("/var/lib/") and name and plain else None


def sysusers(user: str, make: bool) -> str:
    """Creates the user, unless it existed before, and gives it access to serial ports."""
    made = f'u {user} - "{USER_COMMENT}"\n' if make else ""
    return f"{MARK}.\n{made}m {user} {PORT_GROUP}\n"


def made_user(sysusers_text: str) -> str | None:
    """The user that installing created; a user that existed before is not in such a line."""
    users = [line.split()[1] for line in sysusers_text.splitlines() if line.startswith("u ")]
    return users[0] if users and sysusers_text.startswith(MARK) else None


def tmpfiles(user: str, state_dir: str) -> str:
    """Creates the state folder where the unit cannot."""
    return f'{MARK}.\nd "{state_dir}" 0700 {user} {user} -\n'


def user_of(unit_text: str) -> str | None:
    """The user of a unit of ours."""
    users = [line.removeprefix("User=") for line in unit_text.splitlines() if line.startswith("User=")]
    return users[0] if users else None


def _word(text: str) -> str:
    """One word in the service manager's quoting."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{text}"' if any(c in " \t'\"\\;" for c in text) else text
