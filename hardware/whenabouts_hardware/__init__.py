"""RFID readers on a serial line: decoders that open no port, and the bounds on time that each reader allows.

A decoder takes bytes and gives frames; it holds no port, clock or thread, and runs unchanged on MicroPython.

>>> from whenabouts_hardware import decoder
>>> [frame] = decoder("rdm6300").feed(b"\\x02100086F44426\\x03")
>>> frame.kind, frame.fields["decimal"]
('tag', '0008844356')
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whenabouts_hardware.decoding import Decoder
    from whenabouts_hardware.frame import Frame
    from whenabouts_hardware.reader import Reader, Sighting
    from whenabouts_hardware.readers.catalogue import DECODERS, READERS, decoder

__all__ = ["decoder", "DECODERS", "READERS", "Decoder", "Frame", "Reader", "Sighting"]

if not TYPE_CHECKING:

    def __getattr__(name):
        """Load a name of `__all__` with its module: boards use none of them."""
        from whenabouts_protocol.lazy import load

        homes = (
            ("decoding", "Decoder"),
            ("frame", "Frame"),
            ("reader", "Reader Sighting"),
            ("readers.catalogue", "DECODERS READERS decoder"),
        )
        return load(__name__, name, homes)
