"""Ids of results: a hash of the rule and of the readings at the places of a result, the same in every run and driver.

A gateway chooses its numbers, so a reading's digest must not be invertible: otherwise a gateway could give its results the
ids of another's, which then would be taken for repeats. The digest is a block of AES in the mode of Davies and Meyer, with
the source (site, gateway, boot and what else is meant) as key and the number as block, which a processor computes many
times as fast as a hash of a text each. Digests are combined by arithmetic modulo 2^64 in two lanes that feed each other,
mixed by the finalizer of MurmurHash3 (Appleby, 2011). Cost: 0.1 us a place, 0.05 us a distinct reading, 10 us a distinct
source.

    d(reading) = AES-128(key, number) ^ number, as two numbers (high, low); of an empty place (0, 0)
                 key = BLAKE2b-128 of the source's text; number = seq as 16 bytes, big-endian
    h = d(rule) = BLAKE2b-128;  for each place:  high = mix(high ^ d.high) + 3 low,  then  low = mix(low ^ d.low) + 5 high
    the id is the hexadecimal text of high and low
"""

import hashlib
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from whenabouts_cloud.jit import Array, compiled_inline, compiled_noref

Ints = npt.NDArray[np.int64]
Digests = npt.NDArray[np.uint64]
"""(n, 2): the high and the low half of each digest."""

SIZE = 16  # bytes
_MIXER, _SECOND_MIXER = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT, _THREE, _FIVE = np.uint64(33), np.uint64(3), np.uint64(5)


def digests(names: Sequence[pa.DictionaryArray], boot: Ints, seq: Ints) -> Digests:
    """The digest of each reading: of its number, and of the names and the boot of its source.

    The source's text is names and boot with a space between, so names must have none.
    """
    source, texts = _sources([*names, pa.array(boot).dictionary_encode()])
    order = np.argsort(source, kind="stable")
    ends = np.searchsorted(source[order], np.arange(len(texts) + 1))
    blocks = np.zeros((len(seq), 2), ">u8")
    blocks[:, 1] = seq[order].view(np.uint64)
    made = np.empty((len(seq), 2), np.uint64)
    for text, (begin, end) in zip(texts, itertools.pairwise(ends.tolist()), strict=True):
        cipher = Cipher(algorithms.AES(_hash(text)), modes.ECB()).encryptor()
        coded = np.frombuffer(cipher.update(blocks[begin:end].tobytes()), ">u8").reshape(-1, 2)
        made[order[begin:end]] = coded ^ blocks[begin:end]
    return made


def result_ids(rule: str, readings: Digests, at: Ints) -> pa.StringArray:
    """The ids of results of a rule, from the rows of their readings (results, places); -1 is an empty place."""
    made = np.empty((len(at), 2), np.uint64)
    _combine(np.frombuffer(_hash(rule), ">u8").astype(np.uint64), np.ascontiguousarray(readings), at, made)
    characters = made.byteswap().tobytes().hex().encode()
    ends = np.arange(len(at) + 1, dtype=np.int32) * (2 * SIZE)
    return pa.StringArray.from_buffers(len(at), pa.py_buffer(ends), pa.py_buffer(characters))


def _sources(columns: Sequence[pa.DictionaryArray]) -> tuple[Ints, list[str]]:
    """The number of each row's source, and the texts of the sources."""
    source, texts = np.zeros(len(columns[0]), np.int64), [""]
    for column in columns:
        values, size = column.dictionary.to_pylist(), len(column.dictionary)
        pairs = pa.array(source * size + column.indices.to_numpy()).dictionary_encode()
        source = pairs.indices.to_numpy().astype(np.int64)
        texts = [f"{texts[n // size]} {values[n % size]}".lstrip() for n in pairs.dictionary.to_pylist()]
    return source, texts


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=SIZE).digest()


@compiled_noref
def _combine(rule: Array, readings: Array, at: Array, made: Array) -> None:
    """Writes the two numbers of each result's id."""
    for row in range(len(at)):
        high, low = rule[0], rule[1]
        for place in range(at.shape[1]):
            reading = at[row, place]
            a, b = (readings[reading, 0], readings[reading, 1]) if reading >= 0 else (np.uint64(0), np.uint64(0))
            high = _mixed(high ^ a) + _THREE * low
            low = _mixed(low ^ b) + _FIVE * high
        made[row, 0], made[row, 1] = high, low


@compiled_inline
def _mixed(number: Any) -> Any:
    number = (number ^ (number >> _SHIFT)) * _MIXER
    number = (number ^ (number >> _SHIFT)) * _SECOND_MIXER
    return number ^ (number >> _SHIFT)
