"""Mutations of bytes, of CBOR structures and of rule texts. Pure: all choices come from a `Random`."""

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import cbor2

Path = tuple[Any, ...]  # keys and indexes that lead to a place of a structure

BYTES_MAX = 600  # of an input that becomes a seed
EDGES = (0, 1, -1, 2, 23, 24, 63, 64, 255, 256, 65535, 1 << 31, (1 << 32) - 1, 1 << 53, (1 << 62) - 1, (1 << 63) - 1,
         1 << 63, (1 << 64) - 1, 1 << 64, -(1 << 63), -(1 << 63) - 1)  # fmt: skip
ODD = (None, True, False, 0.0, -0.0, 0.5, 1e308, float("nan"), float("inf"), "", "x", "\x00", "a/b", "+", "#", "é" * 130,
       "\u202e", b"", b"\x00", b"\xff" * 12, b"E2" * 40, [], {}, [[]], [0] * 65, {0: 0}, {"$view": 1}, [[[[[[[0]]]]]]],
       cbor2.CBORTag(1, 0), cbor2.undefined)  # fmt: skip


def place(rng: Random, structure: Any) -> tuple[Path, Any]:
    """A place of a structure, and the value there."""
    path: Path = ()
    while isinstance(structure, dict | list) and structure and rng.random() < 0.85:
        step = rng.choice(list(structure)) if isinstance(structure, dict) else rng.randrange(len(structure))
        path, structure = (*path, step), structure[step]
    return path, structure


def changed(structure: Any, path: Path, change: Callable[[Any], Any]) -> Any:
    """A copy in which the value at a place is changed."""
    if not path:
        return change(structure)
    copy = structure.copy()
    copy[path[0]] = changed(copy[path[0]], path[1:], change)
    return copy


def mutated_structure(rng: Random, structure: Any, other: Any) -> Any:
    """A structure with one to three changes; pieces of `other`, another seed, are put in."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        path, _ = place(rng, structure)
        structure = changed(structure, path, lambda value: _value(rng, value, other))
    return structure


def _value(rng: Random, value: Any, other: Any) -> Any:
    kind = rng.random()
    if kind < 0.15:
        return rng.choice(ODD)
    if kind < 0.3:
        return place(rng, other)[1]
    if isinstance(value, bool | None):
        return rng.choice((True, False, None, 0, 1))
    if isinstance(value, int):
        return rng.choice((value + 1, value - 1, -value, value ^ 1 << rng.randrange(64), rng.choice(EDGES)))
    if isinstance(value, str):
        return mutated_bytes(rng, value.encode("utf-8", "replace")).decode("utf-8", rng.choice(("replace", "ignore")))
    if isinstance(value, bytes):
        return mutated_bytes(rng, value)
    if isinstance(value, list):
        return _list(rng, value)
    return _map(rng, value) if isinstance(value, dict) else rng.choice(EDGES)


def _list(rng: Random, items: list[Any]) -> list[Any]:
    copy = items.copy()
    if not copy:
        return [rng.choice((*EDGES, *ODD))]
    index, kind = rng.randrange(len(copy)), rng.random()
    if kind < 0.3:
        del copy[index]
    elif kind < 0.6:
        copy.insert(rng.randrange(len(copy) + 1), copy[index])
    elif kind < 0.8:
        to = rng.randrange(len(copy))
        copy[index], copy[to] = copy[to], copy[index]
    elif kind < 0.81:
        copy *= rng.randrange(2, 300)
    else:
        copy.append(rng.choice((*EDGES, *ODD)))
    return copy


def _map(rng: Random, items: dict[Any, Any]) -> dict[Any, Any]:
    copy = items.copy()
    keys = list(copy)
    kind = rng.random()
    if keys and kind < 0.4:
        del copy[rng.choice(keys)]
    elif keys and kind < 0.6:
        copy[rng.choice(keys)] = copy[rng.choice(keys)]
    else:
        copy[rng.choice((*range(-2, 30), "", "x", 1 << 63, 0.5, b"k"))] = rng.choice((*EDGES, *ODD))
    if rng.random() < 0.1:  # an order that no honest encoder writes
        keys = list(copy)
        rng.shuffle(keys)
        return {key: copy[key] for key in keys}
    return copy


def mutated_bytes(rng: Random, data: bytes) -> bytes:
    """Bytes with one to four changes."""
    held = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        here, kind = rng.randrange(len(held) + 1), rng.random()
        span = rng.choice((1, 1, 2, 4, 9, 40))
        if kind < 0.35 and here < len(held):
            held[here] = rng.choice((held[here] ^ 1 << rng.randrange(8), rng.randrange(256), 0, 0xFF))
        elif kind < 0.5:
            del held[here : here + span]
        elif kind < 0.65:
            held[here:here] = rng.randbytes(span)
        elif kind < 0.8:
            held[here:here] = held[rng.randrange(len(held) + 1) :][:span]
        elif kind < 0.9:
            del held[here:]
        else:  # a head of CBOR that announces much
            held[here:here] = bytes([rng.randrange(8) << 5 | rng.randrange(24, 32)]) + rng.randbytes(rng.randrange(9))
    return bytes(held)


TOKEN = re.compile(r"\w+|\s+|[^\w\s]")


def mutated_text(rng: Random, text: str, words: Sequence[str]) -> str:
    """A text with a few tokens removed, repeated, exchanged, or replaced by `words`."""
    tokens = TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        here, kind = rng.randrange(len(tokens) + 1), rng.random()
        span = rng.choice((1, 1, 3, 20))
        if kind < 0.25:
            del tokens[here : here + span]
        elif kind < 0.5:
            tokens[here:here] = tokens[rng.randrange(len(tokens) + 1) :][:span]
        elif kind < 0.52:
            tokens[here:here] = [rng.choice(words)] * rng.randrange(200)
        else:
            tokens[here : here + 1] = [rng.choice((*words, str(rng.choice(EDGES))))]
    return "".join(tokens)
