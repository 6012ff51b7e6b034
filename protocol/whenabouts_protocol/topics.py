"""Topic names: `wa/2/<site>/<gateway>/<leaf>`.

The second level is the major version of the wire. A gateway publishes only below its own site and gateway, so both the
broker's access rules and the bridge can enforce its name.
"""

from whenabouts_protocol.utf8 import utf8

PREFIX = "wa"
VERSION = 2
LEAVES = ("obs", "state", "birth", "status", "heartbeat", "ack", "rules", "cmd")
MAX_NAME_BYTES = 64  # of a site or a gateway: they are topic levels and file names


def is_name(text: object) -> bool:
    """True for a valid name of a site or gateway: one topic level without wildcards, separators or control characters.

    MQTT 5.0 (section 1.5.4) lets a broker close the connection over control characters (C1 too) and non-characters.
    """
    if type(text) is not str:
        return False
    try:
        if not 0 < len(utf8(text)) <= MAX_NAME_BYTES:
            return False
    except UnicodeError:  # a lone surrogate has no UTF-8 form
        return False
    if text[0] in "$.":
        return False
    return all((" " < c < "\x7f" and c not in "/+#") or (c > "\x9f" and not _is_noncharacter(ord(c))) for c in text)


def _is_noncharacter(code: int) -> bool:
    return 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE


def _is_leaf(leaf: str) -> bool:
    levels = leaf.split("/")
    return leaf in LEAVES or (len(levels) == 2 and levels[0] == "cmd" and is_name(levels[1]))


def topic(site: str, gateway: str, leaf: str) -> str:
    """The full topic of one leaf of a gateway.

    Raises:
        ValueError: a name is not a topic level, or there is no such leaf.

    >>> topic("warehouse", "dock-1", "obs")
    'wa/2/warehouse/dock-1/obs'
    """
    for what, name in (("site", site), ("gateway", gateway)):
        if not is_name(name):
            raise ValueError(f"{what}: found {name!r}, expected 1 to {MAX_NAME_BYTES} bytes without space / + # $ or .")
    if not _is_leaf(leaf):
        raise ValueError(f"topic leaf: found {leaf!r}, expected one of {', '.join(LEAVES)} or cmd/<name>")
    return f"{PREFIX}/{VERSION}/{site}/{gateway}/{leaf}"


def parse_topic(name: str) -> "tuple[str, str, str] | None":
    """(site, gateway, leaf) of a topic of this version, or None for any other topic."""
    levels = name.split("/", 4)
    if len(levels) != 5 or levels[0] != PREFIX or levels[1] != str(VERSION):
        return None
    site, gateway, leaf = levels[2], levels[3], levels[4]
    if not (is_name(site) and is_name(gateway)) or not _is_leaf(leaf):
        return None
    return site, gateway, leaf


def subscription(leaf: str, site: str = "+", gateway: str = "+") -> str:
    """The topic filter for one leaf of all sites and gateways, or of those named. The leaf may be `cmd/+`.

    Raises:
        ValueError: a name is not a topic level.
    """
    for what, name in (("site", site), ("gateway", gateway)):
        if name != "+" and not is_name(name):
            raise ValueError(
                f"{what}: found {name!r}, expected + or 1 to {MAX_NAME_BYTES} bytes without space / + # $ or ."
            )
    return f"{PREFIX}/{VERSION}/{site}/{gateway}/{leaf}"
