"""Where a key belongs in a hash table: the one way for every table of keys in this package."""

from typing import Any

from whenabouts_cloud.jit import woven

SPREAD = 0x9E3779B97F4A7C15 - (1 << 64)  # 2^64 / golden ratio, signed: multiplicative hashing (Knuth, vol. 3, 6.4)


@woven
def home(key: int, size: int) -> Any:
    """The place of a key in a table whose size is a power of two; keys that differ in their high bits alone spread too."""
    mixed = key ^ (key >> 32)
    return ((mixed * SPREAD) >> 32) & (size - 1)
