"""A board's configuration from that of an agent on Linux: settings that carry over, and settings that a board cannot
have.

A setting without effect on the gateway's output is left out with a note (`state_dir`: a board has one flash). A setting
whose loss would matter is refused: a certificate that is never presented, a second reader on one UART. All such
settings are reported at once.

Periods of writes and heartbeats have the defaults of boards unless they are set: at the pace of a disk, a board's flash
would wear out.
"""

import ipaddress
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any

from whenabouts_edge.board.config import checked
from whenabouts_edge.config.load import ConfigError, key_lines, parse
from whenabouts_edge.config.settings import Config, GroupConfig, ReaderConfig
from whenabouts_edge.flash import identity
from whenabouts_edge.flash.boards import BoardFacts
from whenabouts_edge.flash.ports import Ports
from whenabouts_hardware.readers.catalogue import NETWORK_MODULES

SEGMENT_BYTES = 32768  # of the flash log: eight blocks of flash
_WIFI_ENVIRONMENT, _BROKER_ENVIRONMENT = "WHENABOUTS_WIFI_PASSWORD", "WHENABOUTS_BROKER_PASSWORD"
# Settings without effect on a board, whose loss does not matter.
_WITHOUT_EFFECT = {("", "state_dir"): "readings wait in the board's flash"}
# Settings whose loss would matter.
CA_PATH, CERT_PATH, KEY_PATH, _RULES_PATH = "/ca.pem", "/cert.der", "/key.der", "/rules.cbor"  # on the board
_REFUSED = {
    ("", "metrics_file"): "a board has no node exporter; its heartbeats report its health",
}


@dataclass(frozen=True, slots=True)
class Provisioned:
    """The content for a board.

    config: its configuration, with secrets. notes: settings of the original without effect there. files: files that the
    configuration names, by path on the board. identity: its client certificates and key in PEM, b"" for none.
    """

    config: dict[str, Any]
    notes: tuple[str, ...] = ()
    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    identity: bytes = field(default=b"", repr=False)

    def shown(self) -> dict[str, Any]:
        """The configuration without its secrets."""
        return redacted(self.config)


def redacted(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with *** for each password."""
    return {
        key: redacted(value) if isinstance(value, dict) else "***" if key == "password" else value
        for key, value in config.items()
    }


def provision(
    text: str,
    board: BoardFacts,
    environment: Mapping[str, str],
    read: Callable[[str], bytes],
    source: str = "config",
) -> Provisioned:
    """The configuration of a board of this kind from a TOML text; messages refer to the text as `source`.

    Passwords come from the environment, else from the files that the text names. read: returns the content of a file,
    and raises OSError if it cannot.

    Raises:
        ConfigError: all mistakes of the text and all settings that this board cannot have.
    """
    config = parse(text, source)
    maker = _Provisioning(config, tomllib.loads(text), board, read, source, dict(key_lines(text)))
    made = maker.make(environment)
    if maker.mistakes:
        raise ConfigError([mistake for _, mistake in sorted(maker.mistakes)])
    return Provisioned(_accepted(made, source), tuple(maker.notes), maker.files, maker.identity)


def _accepted(made: dict[str, Any], source: str) -> dict[str, Any]:
    """The configuration after the board's own check, which knows the limits of its memory."""
    try:
        return checked(made)
    except ValueError as error:
        raise ConfigError([f"{source}:1: on this board {error}"]) from None


class _Provisioning:
    def __init__(
        self,
        config: Config,
        given: dict[str, Any],
        board: BoardFacts,
        read: Callable[[str], bytes],
        source: str,
        lines: Mapping[tuple[str, int, str], int],
    ) -> None:
        self._config, self._given, self._board, self._read = config, given, board, read
        self._source, self._lines = source, lines
        self._ports = Ports(board)
        self.mistakes: list[tuple[int, str]] = []
        self.notes: list[str] = []
        self.files: dict[str, bytes] = {}
        self.identity = b""

    def make(self, environment: Mapping[str, str]) -> dict[str, Any]:
        """The configuration; invalid if there are mistakes."""
        config, board = self._config, self._board
        self._look_for_refused()
        made: dict[str, Any] = {
            "site": config.site,
            "gateway": config.gateway,
            "broker": self._broker(),
            "ntp": {"host": config.board.ntp_host, "port": config.board.ntp_port},
            "readers": [self._reader(number, reader) for number, reader in enumerate(config.readers)],
            "flash_log": {"folder": "/spool", "segments": board.flash_log_segments, "segment_bytes": SEGMENT_BYTES},
            "build": f"whenabouts {version('whenabouts')} on {board.name}",
        }
        for table, key, name in (("spool", "commit_ms", "commit_ms"), ("heartbeat", "every_ms", "heartbeat_ms")):
            if self._is_given(table, key):
                made[name] = self._given[table][key]
        made["resend_s"] = config.broker.resend_s
        self._put_password(made["broker"], "broker", "password_file", environment.get(_BROKER_ENVIRONMENT))
        if self._put_file("broker", "ca_file", CA_PATH):
            made["broker"]["ca_file"] = CA_PATH
        self._put_identity(made["broker"])
        if self._put_file("", "rules_file", _RULES_PATH):
            made["rules"] = {"file": _RULES_PATH}
        if config.group is not None:
            made["group"] = self._group(config.group)
        if board.wifi:
            made["wifi"] = {"ssid": config.board.wifi_ssid}
            if config.board.wifi_ssid is None:
                self._mistake("board", 0, "", f"wifi_ssid is missing: the Wi-Fi network that {board.name} is to join")
            self._put_password(made["wifi"], "board", "wifi_password_file", environment.get(_WIFI_ENVIRONMENT))
        elif config.board.wifi_ssid is not None:
            self.notes.append(f"[board] wifi_ssid is left out: {board.name} has no Wi-Fi")
        if board.led is not None:
            made["led"] = board.led
        if board.watchdog_s_max is not None:
            made["watchdog_s"] = board.watchdog_s_max
        return made

    def _look_for_refused(self) -> None:
        for (table, key), advice in _REFUSED.items():
            if self._is_given(table, key):
                what = f"{key}: found it set" if key else "found it"
                self._mistake(table, 0, key, f"{what}, expected it left out: {advice}")
        for (table, key), why in _WITHOUT_EFFECT.items():
            if self._is_given(table, key):
                self.notes.append(f"{key} has no effect on a board: {why}")
        clock = self._config.clock["source"]
        if clock != "auto":
            self._mistake(
                "clock", 0, "source",
                f'source: found "{clock}", expected "auto": a board asks the time server of [board]',
            )  # fmt: skip
        kept = self._board.flash_log_segments * SEGMENT_BYTES
        if self._is_given("spool", "limit_mib") and self._config.spool_limit_bytes > kept:
            self._mistake(
                "spool", 0, "limit_mib",
                f"limit_mib: found {self._config.spool_limit_bytes >> 20}, expected it left out: {self._board.name} keeps "
                f"{kept >> 10} KiB of readings",
            )  # fmt: skip

    def _broker(self) -> dict[str, Any]:
        broker = self._config.broker
        if _is_this_computer(broker.host) and not self._board.loopback:
            self._mistake(
                "broker", 0, "host",
                f"host: found {broker.host}, which on a board means the board; expected the broker's address in the network",
            )  # fmt: skip
        made: dict[str, Any] = {"host": broker.host, "port": broker.port, "keepalive_s": broker.keepalive_s}
        if self._is_given("broker", "client_id"):
            made["client_id"] = broker.client_id
        if broker.username is not None:
            made["username"] = broker.username
        return made

    def _reader(self, number: int, reader: ReaderConfig) -> dict[str, Any]:
        if reader.kind in NETWORK_MODULES:
            problem = f"kind: found {reader.kind}, expected a reader on a serial line: boards read no others"
            self._mistake("reader", number, "kind", problem)
            return {}
        port, mistakes = self._ports.take(reader.port, reader.name)
        for mistake in mistakes:
            self._mistake("reader", number, "port", mistake)
        made: dict[str, Any] = {"port": port, "kind": reader.kind, "stream": reader.stream}
        tables = self._given["reader"]
        for key in ("baud", "adapter_us", "latency_us", "listen_only"):
            if key in tables[number]:
                made[key] = tables[number][key]
        made |= reader.own
        if reader.baud == 0 and not self._board.terminals:
            self._mistake("reader", number, "baud", "baud: found 0, expected the speed of the line: a UART has one")
        if reader.line is not None:
            made |= reader.line.options()
        return made

    def _group(self, group: GroupConfig) -> dict[str, Any]:
        members = [f"{self._config.site}/{self._config.gateway}", *("/".join(peer) for peer in group.peers)]
        states = [{key: value for key, value in asdict(state).items() if value is not None} for state in group.states]
        for state in states:  # a presence has no thresholds, a measure does not count reads
            for key in ("hold_ms",) if "on_at" not in state else ("reads", "leave_ms"):
                del state[key]
        return {"name": group.name, "members": members, "stream": group.stream, "states": states}

    def _put_password(self, table: dict[str, Any], name: str, key: str, given: str | None) -> None:
        """The password of the environment, else the first line of the named file."""
        path = self._given.get(name, {}).get(key)
        if given:
            table["password"] = given
        elif path is not None:
            lines = self._content(name, key).decode(errors="replace").splitlines()
            if lines and lines[0]:
                table["password"] = lines[0]
            else:
                self._mistake(name, 0, key, f"{key}: found no text on the first line of {path}, expected the password")

    def _put_identity(self, made: dict[str, Any]) -> None:
        """Certificate and key; the agent's check has ensured that both or none are named."""
        if not self._is_given("broker", "cert_file"):
            return
        if not self._is_given("broker", "ca_file"):
            problem = "cert_file: found it without ca_file, expected both: a board has no built-in authorities"
            self._mistake("broker", 0, "cert_file", problem)
            return
        certificates, key = self._content("broker", "cert_file"), self._content("broker", "key_file")
        if self.mistakes:
            return
        try:
            self.files[CERT_PATH], self.files[KEY_PATH] = identity.der(certificates, key)
        except ValueError as error:
            expected = "expected a certificate and its key in PEM, without a passphrase"
            self._mistake("broker", 0, "cert_file", f"cert_file, key_file: {error}; {expected}")
            return
        self.identity = certificates + b"\n" + key
        made["cert_file"], made["key_file"] = CERT_PATH, KEY_PATH
        if identity.count(certificates) > 1:
            self.notes.append(
                "[broker] cert_file: only its first certificate is copied; the broker must know the others"
            )

    def _put_file(self, name: str, key: str, path: str) -> bool:
        """True if a file is named; it is then copied to this path of the board."""
        if not self._is_given(name, key):
            return False
        self.files[path] = self._content(name, key)
        return True

    def _content(self, name: str, key: str) -> bytes:
        try:
            return self._read(self._given[name][key] if name else self._given[key])
        except OSError as error:
            self._mistake(
                name, 0, key, f"{key}: cannot read ({error}), expected a readable file; give yourself permission"
            )
            return b"-"

    def _is_given(self, table: str, key: str) -> bool:
        if not table:
            return key in self._given
        settings = self._given.get(table)
        return bool(settings) if not key else isinstance(settings, dict) and key in settings

    def _mistake(self, table: str, number: int, key: str, text: str) -> None:
        places = (table, number, key), (table, number, "")
        line = next((self._lines[p] for p in places if p in self._lines), 1)
        where = f"[{table}] " if table else ""
        self.mistakes.append((line, f"{self._source}:{line}: {where}{text}"))


def _is_this_computer(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
