"""The configuration of a board, from JSON: a map with these keys; those with a default may be left out.

    site, gateway         names
    broker                {"host", "port": 1883, "keepalive_s": 30, "client_id", "username", "password", "ca_file",
                          "cert_file", "key_file"}; client_id: the default is "site/gateway"; ca_file: path of certificates
                          in PEM; with it the connection is TLS, and one of them must certify the server as `host`;
                          cert_file, key_file: the board's own, in DER (on a PC PEM)
    ntp                   {"host", "port": 123}
    readers               [{"port", "kind", "stream", ...}]; the other keys: `whenabouts_edge.readers.session.ReaderSession`
    flash_log             {"folder": "/spool", "segments": 8, "segment_bytes": 32768}
    heartbeat_ms, commit_ms, resend_s       5000, 5000, 30
    build                 text for the birth message
    wifi                  {"ssid", "password": ""}; without it the network must be there or be set up by somebody else
    led                   argument of `machine.Pin`, "LED" or a number; without it the board shows nothing
    watchdog_s            0 for none, else 1 to 8 (an RP2040 can wait no longer)
    rules                 {"file", "limit": 64}; without it none run. file: the path of a message of compiled rules that run
                          from the start; limit: readings that all rules together keep
    group                 {"name", "members", "stream", "states"}; members: "site/gateway", this one among them;
                          states: [{"name", "stream", "key", "reads": 1, "leave_ms": 5000}] for presence, or with
                          "attr", "on_at", "off_at", "hold_ms" for a measure beyond thresholds

Unknown keys are refused.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TOP = {
    "site": str, "gateway": str, "broker": dict, "ntp": dict, "readers": list, "flash_log": dict, "heartbeat_ms": int,
    "commit_ms": int, "resend_s": int, "build": str, "wifi": dict, "led": object, "watchdog_s": int, "rules": dict,
    "group": dict,
}  # fmt: skip
_BROKER = {
    "host": str, "port": int, "keepalive_s": int, "client_id": str, "username": str, "password": str,
    "ca_file": str, "cert_file": str, "key_file": str,
}  # fmt: skip
_NTP = {"host": str, "port": int}
_WIFI = {"ssid": str, "password": str}
_RULES = {"file": str, "limit": int}
_GROUP = {"name": str, "members": list, "stream": str, "states": list}
_STATE = {
    "name": str, "stream": str, "key": str, "reads": int, "leave_ms": int, "attr": str, "on_at": object, "off_at": object,
    "hold_ms": int,
}  # fmt: skip
RULES_LIMIT_MAX = 256  # readings, some 48 kB on a board
PEERS_MAX, STATES_MAX = 15, 8
_FLASH_LOG = {"folder": str, "segments": int, "segment_bytes": int}
_READER = {
    "port": object, "kind": str, "stream": str, "baud": int, "latency_us": int, "adapter_us": int, "listen_only": bool,
    "form": str, "columns": list, "key": str, "value": str, "unit": str,
}  # fmt: skip


def checked(config: "Any") -> "dict[str, Any]":
    """The configuration with its defaults.

    Raises:
        ValueError: a key is missing or unknown, or its value is invalid; the text names the first fault.
    """
    settings = _table("config", config, _TOP, ("site", "gateway", "broker", "ntp", "readers"))
    settings["broker"] = _table("broker", settings["broker"], _BROKER, ("host",), {"port": 1883, "keepalive_s": 30})
    files = [name in settings["broker"] for name in ("ca_file", "cert_file", "key_file")]
    if files[1] != files[2] or files[1] > files[0]:
        raise ValueError("broker: found cert_file or key_file, expected both and ca_file")
    settings["ntp"] = _table("ntp", settings["ntp"], _NTP, ("host",), {"port": 123})
    defaults = {"folder": "/spool", "segments": 8, "segment_bytes": 32768}
    settings["flash_log"] = _table("flash_log", settings.get("flash_log", {}), _FLASH_LOG, (), defaults)
    settings["readers"] = [
        _table("reader", one, _keys_of_reader(one), ("port", "kind", "stream")) for one in settings["readers"]
    ]
    if not settings["readers"]:
        raise ValueError("config readers: found none, expected at least one")
    for name, default, least in (
        ("heartbeat_ms", 5000, 100),
        ("commit_ms", 5000, 0),
        ("resend_s", 30, 1),
        ("watchdog_s", 0, 0),
    ):
        settings[name] = settings.get(name, default)
        if settings[name] < least:
            raise ValueError(f"config {name}: found {settings[name]}, expected at least {least}")
    if settings["watchdog_s"] > 8:
        raise ValueError(f"config watchdog_s: found {settings['watchdog_s']}, expected at most 8")
    if "wifi" in settings:
        settings["wifi"] = _table("wifi", settings["wifi"], _WIFI, ("ssid",), {"password": ""})
    if "rules" in settings:
        settings["rules"] = _table("rules", settings["rules"], _RULES, (), {"limit": 64})
        if not 1 <= settings["rules"]["limit"] <= RULES_LIMIT_MAX:
            raise ValueError(f"config rules limit: found {settings['rules']['limit']}, expected 1 to {RULES_LIMIT_MAX}")
    if "group" in settings:
        settings["group"] = _group(settings["group"], settings["site"] + "/" + settings["gateway"])
    return settings


def _keys_of_reader(table: "Any") -> "dict[str, Any]":
    """The keys of a reader's table, with those that only its kind has; looked up only if the table has others."""
    if type(table) is not dict or all(name in _READER for name in table):
        return _READER
    from whenabouts_hardware.readers.catalogue import MODULES, reader

    keys = dict(_READER)
    if table.get("kind") in MODULES:
        keys.update(dict.fromkeys(reader(table["kind"]).own_keys, int))
    return keys


def _group(table: "Any", own: str) -> "dict[str, Any]":
    group = _table("group", table, _GROUP, ("name", "members", "states"))
    members = group["members"]
    for member in members:
        if type(member) is not str or len(member.split("/")) != 2:
            raise ValueError(f"group members: found {member!r}, expected site/gateway")
    names = [member.split("/")[1] for member in members]
    if own not in members or len(set(names)) < len(names) or len(names) > 1 + PEERS_MAX:
        raise ValueError(
            f"group members: found {len(names)}, expected up to {1 + PEERS_MAX} with different names, {own} among them"
        )
    group["states"] = [_table("state", one, _STATE, ("name", "stream")) for one in group["states"]]
    if not 0 < len(group["states"]) <= STATES_MAX:
        raise ValueError(f"group states: found {len(group['states'])}, expected 1 to {STATES_MAX}")
    for one in group["states"]:
        ends = [one.get("on_at"), one.get("off_at")]
        if ends != [None, None] and not all(type(end) is int or type(end) is float for end in ends):
            raise ValueError("state {}: found {}, expected two numbers on_at and off_at".format(one["name"], ends))
    return group


def _table(
    what: str,
    table: "Any",
    kinds: "dict[str, Any]",
    needed: "tuple[str, ...]",
    defaults: "dict[str, Any] | None" = None,
) -> "dict[str, Any]":
    if type(table) is not dict:
        raise ValueError(f"{what}: found {type(table).__name__}, expected a map")
    for name in sorted(table):
        kind = kinds.get(name)
        if kind is None:
            raise ValueError("{}: found {!r}, expected one of {}".format(what, name, ", ".join(sorted(kinds))))
        if kind is not object and type(table[name]) is not kind:
            raise ValueError(f"{what} {name}: found {type(table[name]).__name__}, expected {kind.__name__}")
    for name in needed:
        if name not in table:
            raise ValueError(f"{what} {name}: found nothing, expected a value")
    values = dict(defaults or {})
    values.update(table)
    return values
