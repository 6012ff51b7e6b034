"""The shard of a reading by its key: the same in every process, on every machine and in every version.

The hash of a text is a polynomial of its bytes modulo 2^64, mixed by the finalizer of MurmurHash3 (Appleby, 2011). Cost:
some 5 ns a byte of each distinct key.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whenabouts_cloud.rules.coverage import Ints, encode

Hashes = npt.NDArray[np.uint64]
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd; 2^64 divided by the golden ratio
MIXERS = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))


def shard_of_key(keys: pa.ChunkedArray, shards: int) -> Ints:
    """Shards in 0..shards-1; a reading without a key is in shard 0."""
    encoded = encode(keys)
    of_each = (hashes(encoded.dictionary) % np.uint64(shards)).astype(np.int64)
    at = encoded.indices.fill_null(len(of_each)).to_numpy(zero_copy_only=False)
    shard: Ints = np.append(of_each, 0)[at]
    return shard


def hashes(texts: pa.StringArray) -> Hashes:
    """A number for each text; no text may be null."""
    ends = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    data = texts.buffers()[2]
    octets = np.frombuffer(b"" if data is None else data, np.uint8)
    begin, length = ends[:-1], np.diff(ends)
    made = length.astype(np.uint64)
    for place in range(int(length.max(initial=0))):
        some = np.flatnonzero(length > place)
        made[some] = made[some] * FACTOR + octets[begin[some] + place] + np.uint64(1)
    for mixer in MIXERS:
        made ^= made >> np.uint64(33)
        made *= mixer
    return made ^ (made >> np.uint64(33))
