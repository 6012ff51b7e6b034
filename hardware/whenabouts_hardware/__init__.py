"""RFID readers on a serial line: decoders without ports, and what time can be told from each reader.

A decoder takes bytes and gives frames; it holds no port, clock or thread, and runs unchanged on MicroPython.

>>> [frame] = decoder("rdm6300").feed(b"\\x02100086F44426\\x03")
>>> frame.kind, frame.fields["decimal"]
('tag', '0008844356')
"""

from whenabouts_hardware.decoding import Decoder
from whenabouts_hardware.em4100 import Em4100Decoder
from whenabouts_hardware.frame import Frame
from whenabouts_hardware.line import LineDecoder
from whenabouts_hardware.m6e import M6eDecoder
from whenabouts_hardware.pn532 import Pn532Decoder
from whenabouts_hardware.uhfreader18 import UhfReader18Decoder
from whenabouts_hardware.yrm100 import Yrm100Decoder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAKERS = {
    "id12la": Em4100Decoder,
    "line": LineDecoder,
    "m6e": M6eDecoder,
    "pn532": Pn532Decoder,
    "rdm6300": Em4100Decoder,
    "uhfreader18": UhfReader18Decoder,
    "yrm100": Yrm100Decoder,
}
DECODERS = tuple(sorted(_MAKERS))


def decoder(name: str, **options: "Any") -> Decoder:
    """A new decoder of the named protocol.

    Options: of m6e `mode`, "reader", "host" or "both" (default); of line those of `LineDecoder`; the others have none.

    Raises:
        ValueError: the name is unknown, or an option does not fit.
    """
    if name not in _MAKERS:
        raise ValueError("decoder: found {!r}, expected one of {}".format(name, ", ".join(DECODERS)))
    known = {"m6e": ("mode",), "line": ("form", "columns", "midway")}.get(name, ())
    for option in options:
        if option not in known:
            raise ValueError(
                "decoder {}: found option {!r}, expected {}".format(name, option, " or ".join(known) or "none")
            )
    made: Decoder = _MAKERS[name](**options)
    return made


__all__ = ["decoder", "DECODERS", "Decoder", "Frame"]
