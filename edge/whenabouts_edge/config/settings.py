"""All settings, with the default and a description of each: the only source for validation, the sample file and the
help.
"""

import contextlib
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from whenabouts_edge.group.conditions import MAX_READS
from whenabouts_hardware import READERS, Reader
from whenabouts_hardware.readers.line import COLUMNS_MAX, FORMS
from whenabouts_protocol.group_state import VALUE
from whenabouts_protocol.reading import is_text
from whenabouts_protocol.topics import is_name

REQUIRED = object()
CLOCK_SOURCES = ("auto", "clockbound", "chrony", "timesyncd", "adjtimex", "fixed", "sim")
NUMBER = (int, float)
MAX_THRESHOLD = 1e15
MAX_HOST_BYTES = 253
HOST_EXPECTED = "only the name or the address of a machine, such as broker.example.org"
ANTENNAS_MAX = 64  # of one reader, hubs included
MAX_EXPECTED = 1000  # tags of one reader; below the number of tags that presence remembers


@dataclass(frozen=True, slots=True)
class Option:
    """One key of a table: its type, default, description, and a further condition as (test, expectation)."""

    kind: type | tuple[type, ...]
    default: Any
    about: str
    test: Callable[[Any], bool] | None = None
    expected: str = ""
    example: Any = None  # for the sample file, if there is no default to show


def _number(default: Any, low: int, high: int, about: str, example: Any = None) -> Option:
    return Option(int, default, about, lambda v: low <= v <= high, f"a whole number from {low} to {high}", example)


def _threshold(about: str, example: int) -> Option:
    expected = f"a number from -{MAX_THRESHOLD:g} to {MAX_THRESHOLD:g}"
    return Option(NUMBER, None, about, lambda v: -MAX_THRESHOLD <= v <= MAX_THRESHOLD, expected, example)


def _name(about: str, example: str) -> Option:
    expected = "1 to 64 bytes without space / + #, not beginning with $ or ."
    return Option(str, REQUIRED, about, is_name, expected, example)


def _text(default: Any, about: str, example: Any = None) -> Option:
    expected = "text that is not empty, without control characters"
    return Option(str, default, about, lambda v: bool(v) and _is_line(v), expected, example)


def _host(default: str, about: str) -> Option:
    return Option(str, default, about, is_host, HOST_EXPECTED)


def own_options(kind: str, reader: Reader) -> dict[str, Option]:
    """Options of the keys that only readers of this kind have."""
    return {
        key: _number(None, least, most, f"For {kind}: {about}", example)
        for key, (least, most, about, example) in reader.own_keys.items()
    }


def _is_line(text: str) -> bool:
    return all(c >= " " and c != "\x7f" for c in text)


def is_host(text: str) -> bool:
    """True if the text can be a name or an address: `mqtt://name` and `name:1883` cannot."""
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(text))
    try:
        name = text.removesuffix(".").encode("idna")
    except UnicodeError:  # also for a label that is empty or too long
        return False
    return 0 < len(name) <= MAX_HOST_BYTES and _is_line(text) and not set(text) & set(" /:@?#[]")


def is_listen(url: str) -> bool:
    """True for an address in numbers, a port and a path: a name could be an address that is not this machine's."""
    try:
        place = urlsplit(url)
        ipaddress.ip_address(place.hostname or "")
        return place.scheme == "http" and bool(place.port) and place.path.startswith("/") and _is_line(url)
    except ValueError:
        return False


def is_topic(text: str) -> bool:
    """True if the text names one topic."""
    return is_text(text) and _is_line(text) and not set(text) & set("+#") and text[0] != "$"


def is_value_name(text: str) -> bool:
    """True if a value of a state can have this name: rules can contain it, and it is not reserved."""
    return text.isidentifier() and is_text(text) and text != VALUE


GENERAL = {
    "site": _name("Site of this gateway; first level of its topics.", "warehouse"),
    "gateway": _name("Name of this gateway, unique among all that share a landing.", "dock-1"),
    "state_dir": _text("/var/lib/whenabouts", "Folder for the spool and the status file."),
    "metrics_file": _text(
        None,
        "Text file of metrics for Prometheus' node exporter, renewed every second; name it *.prom.",
        "/var/lib/prometheus/node-exporter/whenabouts.prom",
    ),
    "rules_file": _text(
        None,
        "Compiled rules to run from the start; rules from the broker replace them.",
        "/etc/whenabouts/warehouse.dock-1.rules",
    ),
}
BROKER = {
    "host": _host("localhost", "MQTT broker."),
    "port": _number(1883, 1, 65535, "Port of the broker; 8883 is usual with TLS."),
    "client_id": _text(
        None,
        'Name of this client at the broker; default "<site>/<gateway>", as in its certificate.',
        "warehouse/dock-1",
    ),
    "username": _text(None, "User at the broker.", "dock-1"),
    "password_file": _text(
        None, "File that holds the password on its first line, readable by the agent only.", "/etc/whenabouts/password"
    ),
    "ca_file": _text(None, "Certificates to trust, PEM; setting it turns TLS on.", "/etc/whenabouts/ca.pem"),
    "cert_file": _text(None, "Certificate of this gateway for mutual TLS, PEM.", "/etc/whenabouts/dock-1.pem"),
    "key_file": _text(None, "Key of that certificate, PEM.", "/etc/whenabouts/dock-1.key"),
    "keepalive_s": _number(30, 5, 3600, "Longest silence on the connection."),
    "resend_s": _number(
        30, 1, 86400, "Send again what the cloud has not confirmed for this long; doubles up to 10 min."
    ),
}
CLOCK = {
    "source": Option(
        str,
        "auto",
        "Source of the clock's bound; auto takes the first that knows one.",
        lambda v: v in CLOCK_SOURCES,
        "one of " + ", ".join(CLOCK_SOURCES),
    ),
    "bound_us": _number(None, 0, 10**12, "For fixed: largest error of the system clock.", 100_000),
    "epoch_us": _number(None, 0, 10**17, "For sim: true time at anchor_ns.", 1_749_993_600_000_000),
    "anchor_ns": _number(None, 0, 10**18, "For sim: moment of CLOCK_MONOTONIC at which true time was epoch_us.", 0),
    "speed_milli": _number(1000, 1, 10**6, "For sim: speed of true time in thousandths."),
    "offset_us": _number(0, -(10**15), 10**15, "For sim: error of the clock at epoch_us."),
    "drift_ppm": _number(0, -1000, 1000, "For sim: growth of the error."),
    "base_bound_us": _number(0, 0, 10**15, "For sim: claimed bound at epoch_us."),
    "assumed_drift_ppm": _number(50, 0, 10000, "For sim: growth of the claimed bound."),
}
SPOOL = {
    "limit_mib": _number(
        256, 1, 10**6, "Readings kept while the cloud is away; beyond it new ones are refused and counted."
    ),
    "commit_ms": _number(
        50, 1, 10000, "Readings are stored at least this often; a power cut can lose those of one period."
    ),
}
HEARTBEAT = {"every_ms": _number(1000, 100, 3_600_000, "Period of the heartbeat.")}
READER = {
    "name": _name("Name of the reader in messages and logs.", "dock"),
    "kind": Option(
        str, REQUIRED, "Protocol of the reader: " + ", ".join(sorted(READERS)) + ", or one of an installed package.",
        example="m6e",
    ),
    "port": _text(
        REQUIRED, "Device, best by id: /dev/serial/by-id/...; or a pyserial URL such as replay://FILE.", "/dev/ttyUSB0"
    ),
    "stream": Option(
        str,
        None,
        'Stream of its readings; default "<name>/tags".',
        is_text,
        "text of 1 to 256 bytes",
        "dock/tags",
    ),
    "baud": _number(
        None, 0, 4_000_000, "Speed of the line; default by kind. 0 without a wire, as on native USB.", 115200
    ),
    "adapter_us": _number(16000, 0, 10**7, "Longest time a byte waits in the serial adapter (16 ms in FTDI chips)."),
    "latency_us": _number(None, 0, 10**8, "Longest time from a sighting to its frame; default by kind.", 1_000_000),
    **{
        key: option
        for kind in sorted(READERS)
        if not READERS[kind].converse
        for key, option in own_options(kind, READERS[kind]).items()
    },
    "listen_only": Option(bool, False, "Never write to the reader: another program controls it."),
    "form": Option(
        str,
        "auto",
        "For line: format of a line; auto detects it.",
        lambda v: v in FORMS,
        "one of " + ", ".join(FORMS),
    ),
    "columns": Option(
        list,
        None,
        "For line: names of comma-separated values, in order; an empty name skips one.",
        lambda v: 0 < len(v) <= COLUMNS_MAX and all(type(name) is str for name in v) and any(v),
        f"a list of 1 to {COLUMNS_MAX} texts, not all empty",
        ["temperature", "", "probe"],
    ),
    "key_field": _text(None, "For line: field that is the key of the reading.", "probe"),
    "value_field": _text(
        None,
        "For line: field that is the value; for NMEA the number of a value. Without it only text lines have a value.",
        "temperature",
    ),
    "unit": Option(str, None, "For line: unit of the value.", is_text, "text of 1 to 256 bytes", "Cel"),
    "leave_ms": _number(
        None, 1, 86_400_000,
        "Report tags that enter and leave: a tag has left when the scanning reader has not read it for this long.", 5000,
    ),
    "presence_stream": Option(
        str, None, 'With leave_ms: stream of these reports; default "<name>/presence".', is_text, "text of 1 to 256 bytes",
        "dock/presence",
    ),
    "expected": Option(
        list, None, "With leave_ms: tags that are reported absent if they are not there at the start.",
        lambda v: 0 < len(v) <= MAX_EXPECTED and all(is_text(key) for key in v), f"a list of 1 to {MAX_EXPECTED} keys",
        ["30395DFA8101C3400000162A"],
    ),
}  # fmt: skip
# Keys of a reader that speaks LLRP, beside or instead of those above.
LLRP_READER = {
    "host": Option(str, REQUIRED, "For llrp: name or address of the reader.", is_host, HOST_EXPECTED, "192.168.1.20"),
    "port": _number(5084, 1, 65535, "For llrp: its port."),
    "antennas": Option(
        list, None, "For llrp: antennas to read with; default all. The silence of tags proves nothing while one is away.",
        lambda v: 0 < len(set(map(str, v))) == len(v) <= ANTENNAS_MAX
        and all(type(a) is int and 0 < a <= ANTENNAS_MAX for a in v),
        f"a list of different numbers from 1 to {ANTENNAS_MAX}", [1, 2],
    ),
    **own_options("llrp", READERS["llrp"]),
}  # fmt: skip
# Keys of a reader that publishes its events by itself, beside or instead of those above.
PUBLISHER = {
    "listen": Option(
        str, None, "For impinj and zebra: where the reader posts its events.", is_listen,
        "http://ADDRESS:PORT/PATH with an address of this gateway", "http://192.168.1.5:8080/dock",
    ),
    "token_file": _text(
        None, "With listen: file with the token on its first line that the reader must show.", "/etc/whenabouts/dock-token"
    ),
    "topic": Option(
        str, None, "For impinj and zebra: topic of the agent's broker to which the reader publishes, instead of listen.",
        is_topic, "1 to 256 bytes of a topic without + and #", "readers/dock",
    ),
}  # fmt: skip
LLRP, HTTP, MQTT = "llrp://", "http://", "mqtt://"
OF_SERIAL_LINE = ("baud", "adapter_us", "listen_only")
GROUP = {
    "name": _text(
        None, "Group whose members' local states are compared; setting it makes this gateway a member.", "office"
    ),
    "members": Option(
        list,
        None,
        'Gateways that may be members: a name, or "site/name" for one of another site.',
        lambda v: all(type(member) is str for member in v),
        "a list of texts",
        ["dock-1", "office/projector"],
    ),
    "stream": Option(
        str,
        None,
        'Stream of this gateway\'s states; default "<gateway>/state".',
        is_text,
        "text of 1 to 256 bytes",
        "dock-1/state",
    ),
}
STATE = {
    "name": Option(
        str, REQUIRED, "Name of the value in the state.", is_value_name, "letters, digits and _, not beginning with a digit",
        "loaded",
    ),
    "stream": _text(REQUIRED, "Stream of a reader of this gateway that determines the value.", "dock/tags"),
    "key": _text(None, "Only readings of this tag count; default any tag.", "30395DFA8101C3400000162A"),
    "reads": _number(1, 1, MAX_READS, "For presence: it begins after this many reads without a pause of leave_ms."),
    "leave_ms": _number(5000, 1, 86_400_000, "For presence: it ends this long after the last read."),
    "attr": _text(None, "For a measure: attribute to compare; default the value of the reading.", "rssi"),
    "on_at": _threshold("For a measure: true from here on, upwards if above off_at, else downwards.", -50),
    "off_at": _threshold("For a measure: false from here on.", -60),
    "hold_ms": _number(0, 0, 86_400_000, "For a measure: least time beyond a threshold before it counts."),
}  # fmt: skip
BOARD = {
    "wifi_ssid": Option(
        str,
        None,
        "For boards: name of the Wi-Fi network.",
        lambda v: 0 < len(v.encode(errors="replace")) <= 32,
        "1 to 32 bytes",
        "warehouse",
    ),
    "wifi_password_file": _text(
        None,
        "For boards: file with the password of the Wi-Fi network on the first line.",
        "/etc/whenabouts/wifi-password",
    ),
    "ntp_host": _host("pool.ntp.org", "For boards: time server; one in the local network makes narrower stamps."),
    "ntp_port": _number(123, 1, 65535, "Port of the time server."),
}
TABLES = {"broker": BROKER, "clock": CLOCK, "spool": SPOOL, "heartbeat": HEARTBEAT, "group": GROUP, "board": BOARD}


@dataclass(frozen=True, slots=True)
class LineConfig:
    """The format of a sensor's lines."""

    form: str = "auto"
    columns: tuple[str, ...] = ()
    key_field: str | None = None
    value_field: str | None = None
    unit: str | None = None

    def options(self) -> dict[str, Any]:
        """The options that are set, under the names used on boards."""
        named = {"form": self.form, "columns": list(self.columns), "key": self.key_field, "value": self.value_field}
        return {name: value for name, value in {**named, "unit": self.unit}.items() if value}


@dataclass(frozen=True, slots=True)
class PresenceConfig:
    """Time after which a tag counts as having left a reader, and the stream of presence readings."""

    stream: str
    leave_ms: int
    expected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Address and credentials of the broker, and the timing of its connection."""

    host: str
    port: int
    client_id: str
    username: str | None
    password_file: str | None
    ca_file: str | None
    cert_file: str | None
    key_file: str | None
    keepalive_s: int
    resend_s: int

    @property
    def tls(self) -> bool:
        """True if the connection is encrypted."""
        return bool(self.ca_file or self.cert_file)


@dataclass(frozen=True, slots=True)
class ReaderConfig:
    """One reader on one port: a device, or a URL, as `llrp://192.168.1.20:5084` of a reader on the network."""

    name: str
    kind: str
    port: str
    stream: str
    baud: int
    adapter_us: int
    latency_us: int
    listen_only: bool
    own: dict[str, Any] = field(default_factory=dict)  # values of the keys that only this kind of reader has
    line: LineConfig | None = None
    presence: PresenceConfig | None = None
    token_file: str | None = None  # of a reader that posts its events
    broker: BrokerConfig | None = None  # where a reader publishes its events


@dataclass(frozen=True, slots=True)
class StateConfig:
    """One value of the local state: a presence, or a measure when the thresholds are given."""

    name: str
    stream: str
    key: str | None
    reads: int
    leave_ms: int
    attr: str | None
    on_at: float | None
    off_at: float | None
    hold_ms: int


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """The group, its other members as (site, gateway), and the sources of this gateway's states."""

    name: str
    peers: tuple[tuple[str, str], ...]
    stream: str
    states: tuple[StateConfig, ...]


@dataclass(frozen=True, slots=True)
class BoardConfig:
    """Settings only for boards; an agent on Linux ignores them."""

    wifi_ssid: str | None
    wifi_password_file: str | None
    ntp_host: str
    ntp_port: int


@dataclass(frozen=True, slots=True)
class Config:
    """A whole configuration with all defaults filled in."""

    site: str
    gateway: str
    state_dir: str
    rules_file: str | None
    broker: BrokerConfig
    clock: dict[str, Any]
    spool_limit_bytes: int
    commit_ms: int
    heartbeat_ms: int
    board: BoardConfig
    readers: tuple[ReaderConfig, ...] = field(default_factory=tuple)
    group: GroupConfig | None = None
    metrics_file: str | None = None


def sample() -> str:
    """A configuration file with every option: required ones filled with examples, the others commented out."""
    lines = [
        "# Configuration of the Whenabouts agent.",
        "# Lines that are commented out show the default, or an example if marked so.",
        "",
    ]

    def table(options: dict[str, Option], shown: bool = True) -> None:
        for key, option in options.items():
            lines.append(f"# {option.about}")
            if option.default is REQUIRED:
                lines.append(f"{'' if shown else '#'}{key} = {_toml(option.example)}")
            elif option.default is None:
                lines.append(f"#{key} = {_toml(option.example)}  # example")
            else:
                lines.append(f"#{key} = {_toml(option.default)}")
        lines.append("")

    table(GENERAL)
    for name, options in TABLES.items():
        lines.append(f"[{name}]")
        table(options)
    lines.append("# One table for each reader.")
    lines.append("[[reader]]")
    table(READER)
    lines.append(
        "# A reader that speaks LLRP on the network. The other keys are as above, without those of serial lines:"
    )
    lines.append(f"# {', '.join(OF_SERIAL_LINE)}.")
    lines += ["#[[reader]]", '#name = "portal"', '#kind = "llrp"']
    table(LLRP_READER, shown=False)
    lines.append("# A reader that publishes its events by itself, by listen or by topic.")
    lines += ["#[[reader]]", '#name = "door"', '#kind = "impinj"']
    table({key: option for key, option in PUBLISHER.items() if key != "topic"}, shown=False)
    lines[-1] = f"# topic = {_toml(PUBLISHER['topic'].example)}: {PUBLISHER['topic'].about}"
    lines.append("")
    lines.append(
        "# One table for each value of the local state; needs [group]. Presence of a tag, or a measure beyond thresholds."
    )
    lines.append("#[[state]]")
    table(STATE, shown=False)
    return "\n".join(lines)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)
