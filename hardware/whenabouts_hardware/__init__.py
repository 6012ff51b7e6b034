"""RFID readers on a serial line: decoders without ports, and what time can be told from each reader.

A decoder takes bytes and gives frames; it holds no port, clock or thread, and runs unchanged on MicroPython.

>>> [frame] = decoder("rdm6300").feed(b"\\x02100086F44426\\x03")
>>> frame.kind, frame.fields["decimal"]
('tag', '0008844356')
"""

from whenabouts_hardware.decoding import Decoder
from whenabouts_hardware.em4100 import Em4100Decoder
from whenabouts_hardware.frame import Frame
from whenabouts_hardware.m6e import M6eDecoder

DECODERS = ("id12la", "m6e", "rdm6300")


def decoder(name: str, mode: "str | None" = None) -> Decoder:
    """A new decoder of the named protocol; `mode` is for m6e alone: "reader", "host" or "both" (default).

    Raises:
        ValueError: the name or the mode is unknown, or the protocol has no modes.
    """
    if name == "m6e":
        return M6eDecoder("both" if mode is None else mode)
    if name not in DECODERS:
        raise ValueError("decoder: found {!r}, expected one of {}".format(name, ", ".join(DECODERS)))
    if mode is not None:
        raise ValueError(f"decoder {name}: found mode {mode!r}, expected none")
    return Em4100Decoder()


__all__ = ["decoder", "DECODERS", "Decoder", "Frame"]
