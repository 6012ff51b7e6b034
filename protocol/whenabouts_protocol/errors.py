"""The one error that decoding, and encoding what cannot be decoded again, may end in.

WireError (ValueError)      malformed, oversized, foreign or unsupported bytes; or a reading that has no wire form
"""


class WireError(ValueError):
    """Bytes that are no message of this protocol. The text says what was found, what was expected and where."""
