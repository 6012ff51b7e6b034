"""The only error that decoding and encoding raise; encoding raises it for values that cannot be decoded again.

WireError (ValueError)      malformed, oversized, foreign or unsupported bytes; or a reading that has no wire form
"""


class WireError(ValueError):
    """Bytes that are not a message of this protocol. The text names what was found, what was expected and where."""
