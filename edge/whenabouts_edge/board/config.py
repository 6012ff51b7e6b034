"""The configuration of a board, from JSON: a map with these keys; those with a default may be left out.

    site, gateway         names
    broker                {"host", "port": 1883, "keepalive_s": 30, "username", "password"}
    ntp                   {"host", "port": 123}
    readers               [{"port", "kind", "stream", ...}]; the rest is of `reader.BoardReader`
    ring                  {"folder": "/spool", "segments": 8, "segment_bytes": 32768}
    beat_ms, commit_ms, resend_s       5000, 5000, 30
    build                 text for the birth message

Every key is known or refused.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TOP = {
    "site": str, "gateway": str, "broker": dict, "ntp": dict, "readers": list, "ring": dict, "beat_ms": int,
    "commit_ms": int, "resend_s": int, "build": str,
}  # fmt: skip
_BROKER = {"host": str, "port": int, "keepalive_s": int, "username": str, "password": str}
_NTP = {"host": str, "port": int}
_RING = {"folder": str, "segments": int, "segment_bytes": int}
_READER = {
    "port": object, "kind": str, "stream": str, "baud": int, "latency_us": int, "adapter_us": int, "listen_only": bool,
    "region": int, "read_power_cdbm": int, "form": str, "columns": list, "key": str, "value": str, "unit": str,
}  # fmt: skip


def checked(config: "Any") -> "dict[str, Any]":
    """The configuration with its defaults.

    Raises:
        ValueError: a key is missing, unknown, or holds something else; the first fault is named.
    """
    found = _table("config", config, _TOP, ("site", "gateway", "broker", "ntp", "readers"))
    found["broker"] = _table("broker", found["broker"], _BROKER, ("host",), {"port": 1883, "keepalive_s": 30})
    found["ntp"] = _table("ntp", found["ntp"], _NTP, ("host",), {"port": 123})
    defaults = {"folder": "/spool", "segments": 8, "segment_bytes": 32768}
    found["ring"] = _table("ring", found.get("ring", {}), _RING, (), defaults)
    found["readers"] = [_table("reader", one, _READER, ("port", "kind", "stream")) for one in found["readers"]]
    if not found["readers"]:
        raise ValueError("config readers: found none, expected at least one")
    for name, default, least in (("beat_ms", 5000, 100), ("commit_ms", 5000, 0), ("resend_s", 30, 1)):
        found[name] = found.get(name, default)
        if found[name] < least:
            raise ValueError(f"config {name}: found {found[name]}, expected at least {least}")
    return found


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
    found = dict(defaults or {})
    found.update(table)
    return found
