"""The decoders by name."""

from whenabouts_hardware.decoding import Decoder
from whenabouts_hardware.frame import Frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DECODERS = ("id12la", "line", "m6e", "pn532", "rdm6300", "uhfreader18", "yrm100")
_OPTIONS = {"m6e": ("mode",), "line": ("form", "columns", "midway")}


def decoder(name: str, **options: "Any") -> Decoder:
    """A new decoder of the named protocol.

    Options: of m6e `mode`, "reader", "host" or "both" (default); of line those of `LineDecoder`; the others have none.

    Raises:
        ValueError: the name is unknown, or an option does not fit.
    """
    if name not in DECODERS:
        raise ValueError("decoder: found {!r}, expected one of {}".format(name, ", ".join(DECODERS)))
    known = _OPTIONS.get(name, ())
    for option in options:
        if option not in known:
            wanted = " or ".join(known) or "none"
            raise ValueError(f"decoder {name}: found option {option!r}, expected {wanted}")
    made: Decoder = _maker(name)(**options)
    return made


def _maker(name: str) -> "type[Any]":
    """The decoder's class; only what is asked for is loaded, as a board has one kind of reader and little memory."""
    if name == "m6e":
        from whenabouts_hardware.readers.m6e import M6eDecoder

        return M6eDecoder
    if name == "pn532":
        from whenabouts_hardware.readers.pn532 import Pn532Decoder

        return Pn532Decoder
    if name == "uhfreader18":
        from whenabouts_hardware.readers.uhfreader18 import UhfReader18Decoder

        return UhfReader18Decoder
    if name == "yrm100":
        from whenabouts_hardware.readers.yrm100 import Yrm100Decoder

        return Yrm100Decoder
    if name == "line":
        from whenabouts_hardware.readers.line import LineDecoder

        return LineDecoder
    from whenabouts_hardware.readers.em4100 import Em4100Decoder

    return Em4100Decoder


__all__ = ["decoder", "DECODERS", "Decoder", "Frame"]
