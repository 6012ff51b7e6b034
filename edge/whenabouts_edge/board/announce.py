"""Birth and status messages of a board, byte for byte as `messages.birth_status` writes them.

They are written directly, as a board has no memory for the decoder that verifies each message there. Only texts of the
configuration may be invalid here; they are checked. Names of site and gateway are checked where topics are made of them.
"""

from whenabouts_protocol.cbor import dumps
from whenabouts_protocol.layout import (
    CONDITIONS,
    K_BIRTH_STREAMS,
    K_BOOT,
    K_BUILD,
    K_CONDITION,
    K_GATEWAY,
    K_GROUP,
    K_SCHEMA,
    K_SITE,
    K_VIEW,
    KINDS,
    SCHEMA,
)
from whenabouts_protocol.reading import is_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def birth(
    site: str,
    gateway: str,
    boot: int,
    streams: "list[tuple[Any, ...]]",
    group: "str | None",
    view: "list[str]",
    build: str,
) -> bytes:
    """The birth message, as from `birth_status.encode_birth`. streams: with all their parts, or without them.

    Raises:
        ValueError: text that no message may hold.
    """
    texts = [group, build or None] + view  # noqa: RUF005
    for stream in streams:
        texts += [stream[0], stream[2]]
    for text in texts:
        if text is not None and not is_text(text):
            raise ValueError(f"birth: found {text!r}, expected text of 1 to 256 bytes")
    rows = [[stream[0], KINDS.index(stream[1])] + list(stream[2:]) for stream in streams]  # noqa: RUF005
    return _message(site, gateway, boot, {K_BIRTH_STREAMS: rows, K_GROUP: group, K_VIEW: view, K_BUILD: build})


def statuses(site: str, gateway: str, boot: int) -> "dict[str, bytes]":
    """The status message of each condition, as from `birth_status.encode_status`."""
    return {name: _message(site, gateway, boot, {K_CONDITION: n}) for n, name in enumerate(CONDITIONS)}


def _message(site: str, gateway: str, boot: int, fields: "dict[int, Any]") -> bytes:
    fields[K_SCHEMA], fields[K_SITE], fields[K_GATEWAY], fields[K_BOOT] = SCHEMA, site, gateway, boot
    return dumps(fields)
