"""Tags whose names are known because they are written from their names, by the arithmetic of the standard."""

import random
from typing import NamedTuple

PREFIX_BITS = {6: (6, 20), 7: (5, 24), 8: (4, 27), 9: (3, 30), 10: (2, 34), 11: (1, 37), 12: (0, 40)}  # partition, bits
OTHERS = ["E2801160600002084C5D3A1F", "3077FFFFFC00000000000000", "30G4", "", "hot", "3074257BF7194E40", None]


class Tag(NamedTuple):
    """A key, and what rules call its name; None where it has none."""

    key: str | None
    uri: str | None = None
    gtin: str | None = None
    epc_scheme: str | None = None
    company_prefix: str | None = None


def sgtin(prefix, item, serial, filter_value=1):
    """SGTIN-96 of a company prefix and the indicator with the item reference, texts of 13 digits together."""
    partition, bits = PREFIX_BITS[len(prefix)]
    number = (0x30 << 88) | (filter_value << 85) | (partition << 82)
    number |= (int(prefix) << (82 - bits)) | (int(item) << 38) | serial
    digits = item[0] + prefix + item[1:]
    check = -sum(int(digit) * (1 if place % 2 else 3) for place, digit in enumerate(digits)) % 10
    uri = f"urn:epc:id:sgtin:{prefix}.{item}.{serial}"
    return Tag(f"{number:024X}", uri, f"{digits}{check}", "sgtin", prefix)


def sscc(prefix, reference):
    """SSCC-96 of a company prefix and a serial reference, texts of 17 digits together."""
    partition, bits = PREFIX_BITS[len(prefix)]
    number = (0x31 << 88) | (partition << 82) | (int(prefix) << (82 - bits)) | (int(reference) << 24)
    return Tag(f"{number:024X}", f"urn:epc:id:sscc:{prefix}.{reference}", None, "sscc", prefix)


def gid(manager, object_class, serial):
    """GID-96, which has no company prefix."""
    number = (0x35 << 88) | (manager << 60) | (object_class << 36) | serial
    return Tag(f"{number:024X}", f"urn:epc:id:gid:{manager}.{object_class}.{serial}", None, "gid")


NAMED = [
    sgtin("0614141", "812345", 6789),
    sgtin("0614141", "812345", 6790),
    sgtin("952114100012", "3", 7),
    sscc("0614141", "1234567890"),
    sscc("952114100012", "34567"),
    gid(952056, 2718, 1414),
]
TAGS = [*NAMED, *(Tag(key) for key in OTHERS)]


def random_sgtin(rng: random.Random):
    """A tag with an SGTIN of any length of prefix."""
    length = rng.randint(6, 12)
    digits = f"{rng.randrange(10**13):013d}"
    return sgtin(digits[:length], digits[length:], rng.getrandbits(38), rng.randrange(8))
