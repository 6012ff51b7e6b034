"""Where the names live that can be imported from `whenabouts_protocol` itself; boards import from the modules."""

_HOMES = {
    "WireError": "errors",
    "Interval": "interval",
    "Reading": "reading",
    "topic": "topics",
    "parse_topic": "topics",
    "subscription": "topics",
    "VectorClock": "vector_clock",
    "encode_batch": "wire",
    "decode_batch": "wire",
}
_MESSAGES = ("Birth", "Status", "Beat", "Ack")


def named(name: str) -> object:
    """What a name stands for, loaded with its module; a module by its own name.

    Raises:
        AttributeError: there is none.
    """
    home = _HOMES.get(name, name)
    if name in _MESSAGES or name[:7] in ("encode_", "decode_"):
        home = _HOMES.get(name, "messages")
    elif name[:5] in ("prob_", "ratio"):
        home = "probability"
    try:
        found = __import__("whenabouts_protocol." + home, None, None, (name,))
    except ImportError:
        raise AttributeError(f"whenabouts_protocol: found no {name!r}") from None
    return found if home == name else getattr(found, name)
