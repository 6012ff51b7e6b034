"""The kinds of readers by name. To add one, write its module in this folder, with a `READER`, and its line in
`MODULES`; a reader on a network belongs in the folder `network` and in `NETWORK_MODULES`.

A reader's module is loaded on first use: a board has one kind of reader, and little memory.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whenabouts_hardware.decoding import Decoder
    from whenabouts_hardware.reader import Reader

    READERS: "dict[str, Reader]"
else:

    def __getattr__(name):
        """Create READERS, all kinds by name, on first use; packages add theirs to it."""
        if name != "READERS":
            raise AttributeError(f"{__name__}: found no {name!r}")
        readers = globals()["READERS"] = {kind: reader(kind) for kind in KINDS}
        return readers


MODULES = {
    "id12la": "id12la",
    "line": "line",
    "m6e": "m6e",
    "pn532": "pn532",
    "rdm6300": "em4100",
    "uhfreader18": "uhfreader18",
    "yrm100": "yrm100",
}
NETWORK_MODULES = {"impinj": "impinj", "llrp": "llrp", "zebra": "zebra"}  # boards have none of these
DECODERS = tuple(sorted(MODULES))
KINDS = tuple(sorted(MODULES) + sorted(NETWORK_MODULES))


def reader(kind: str) -> "Reader":
    """The facts of a built-in kind.

    Raises:
        ValueError: the kind is not built in.
    """
    if kind in MODULES:
        module = "whenabouts_hardware.readers." + MODULES[kind]
    elif kind in NETWORK_MODULES:
        module = "whenabouts_hardware.network." + NETWORK_MODULES[kind]
    else:
        raise ValueError("reader: found {!r}, expected one of {}".format(kind, ", ".join(KINDS)))
    facts: Reader = __import__(module, None, None, ("READER",)).READER
    return facts


def decoder(name: str, **options: "Any") -> "Decoder":
    """A new decoder of a kind of reader.

    Options: for m6e `mode`, "reader", "host" or "both" (default); for line those of `LineDecoder`; the others have
    none.

    Raises:
        ValueError: the name is unknown, or an option does not fit.
    """
    made = reader(name).decoder
    for option in options:
        if option not in made.OPTIONS:
            wanted = " or ".join(made.OPTIONS) or "none"
            raise ValueError(f"decoder {name}: found option {option!r}, expected {wanted}")
    return made(**options)
