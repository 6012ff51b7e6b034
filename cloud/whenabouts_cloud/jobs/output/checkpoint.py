"""Reads Spark's checkpoint of a query: which input a micro-batch has, and whether the checkpoint is older than the results.

    _checkpoint/offsets/12       begun micro-batches: how far the landing is read
    _checkpoint/commits/12       finished ones
    _checkpoint/state/           rows kept between micro-batches

Spark renames these files into place and syncs none of them, so a power cut can lose the newest ones or leave them empty. The
sink syncs them all before results appear (`durable.sync_file_system`). Then a file that is lost or empty belongs to a
micro-batch that has published nothing.
"""

import json
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

from whenabouts_cloud.delivery.published import FOLDER
from whenabouts_cloud.jobs.output.output_place import Output, Place
from whenabouts_cloud.jobs.output.task_files import EFFECTS, LATE, RESULTS
from whenabouts_cloud.landing.store import Store

NONE = "-"  # in a file of offsets: nothing is known of the source
LEAST_LINES = {"offsets": 3, "commits": 2}  # version and metadata, and a line for the source


class LostCheckpointError(ValueError):
    """Results are newer than the checkpoint, or come from another input; the text names the folder and what to do."""


def checkpoint_of(out: Place) -> Store:
    """Return the checkpoint folder of an output, ready for Spark; Spark does not start from unfinished files.

    Removes what a kill or a power cut left unfinished: files of micro-batches that have published nothing, and the whole
    folder before the first one began.
    """
    place = Output.at(out).checkpoint
    _remove_unfinished(place)
    if _newest(place, "offsets") < 0 and place.entries():
        place.remove_folder("")
    return place


def unfinished(out: Place) -> bool:
    """True if a micro-batch has begun and is not committed: Spark repeats it first."""
    place = Output.at(out).checkpoint
    return _newest(place, "offsets") > _newest(place, "commits")


def check_checkpoint(out: Place) -> None:
    """Check that the checkpoint knows all published micro-batches.

    Raises:
        LostCheckpointError: it does not, so Spark would give their numbers to other input.
    """
    output = Output.at(out)
    known = _newest(checkpoint_of(output), "offsets")
    published = max(_published(output.store), default=-1)
    if published > known:
        beside = "" if output.store.local is not None else f" in {output.checkpoint.uri}"
        raise LostCheckpointError(
            f"output {output}: found results up to batch {published} and a checkpoint{beside} up to "
            f"{f'batch {known}' if known >= 0 else 'no batch'}, expected it to know every published batch; "
            f"its last files were lost, as by a power cut: {_begin_again(output)}"
        )


def check_same_input(out: Place, folder: str, found: str | None, digest: str) -> None:
    """Check that a published folder has the digest of the micro-batch that would be published there.

    Raises:
        LostCheckpointError: it has another one, or none.
    """
    if found != digest:
        output = Output.at(out)
        raise LostCheckpointError(
            f"output {output}: found {folder} with the results of another input (digest {found}), expected "
            f"{digest}; the checkpoint is not the one that they were computed with: {_begin_again(output)}"
        )


class Input(NamedTuple):
    """What a micro-batch reads: from one offset of the landing to another (`landing.history`)."""

    start: dict[str, Any]
    end: dict[str, Any]

    @property
    def digest(self) -> str:
        """Digest of the two offsets: the files between them never change."""
        return blake2b(json.dumps(self, sort_keys=True).encode(), digest_size=16).hexdigest()


def input_of(checkpoint: Store, batch_id: int) -> Input:
    """The input of a micro-batch that has begun."""
    return Input(*(_offset(checkpoint, number) for number in (batch_id - 1, batch_id)))


def _begin_again(out: Output) -> str:
    return f"delete {out} and start again, or take another --out; all readings of the landing are then read anew"


def _published(out: Store) -> Iterator[int]:
    """Numbers of the micro-batches that have results or a side output."""
    for folder in (RESULTS, LATE, EFFECTS):
        names = (one.name.removeprefix(FOLDER) for one in out.entries(folder) if one.name.startswith(FOLDER))
        yield from (int(name) for name in names if name.isdecimal())


def _newest(checkpoint: Store, log: str) -> int:
    """Highest number of a file in a folder of the checkpoint, -1 without any."""
    names = (one.name.removesuffix(".compact") for one in checkpoint.entries(log))
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def _offset(checkpoint: Store, number: int) -> dict[str, Any]:
    """How far the landing is read after a micro-batch; nothing before the first one."""
    try:
        line = checkpoint.read(f"offsets/{number}").decode().splitlines()[2]
    except FileNotFoundError:
        return {}
    return {} if line == NONE else dict(json.loads(line))


def _remove_unfinished(checkpoint: Store) -> None:
    for log in ("offsets", "commits"):
        while (newest := _newest(checkpoint, log)) >= 0:
            compact = checkpoint.sizes([f"{log}/{newest}.compact"])[0] is not None
            name = f"{newest}.compact" if compact else str(newest)
            if _whole(checkpoint, log, name):
                break
            _remove(checkpoint, log, name)
    while (newest := _newest(checkpoint, "commits")) > _newest(checkpoint, "offsets"):
        _remove(checkpoint, "commits", str(newest))


def _whole(checkpoint: Store, log: str, name: str) -> bool:
    """True if a file of the checkpoint is complete, and its checksum is either complete or absent."""
    data = checkpoint.read(f"{log}/{name}")
    [checksum] = checkpoint.sizes([f"{log}/.{name}.crc"])
    if checksum is not None and checksum != 8 + 4 * -(-len(data) // 512):
        checkpoint.remove(f"{log}/.{name}.crc")  # Spark reads the file without it
    lines = data.split(b"\n")
    try:
        for line in lines[1:]:
            if line and line != NONE.encode():
                json.loads(line)
    except ValueError:
        return False
    return lines[0].startswith(b"v") and len(list(filter(None, lines))) >= LEAST_LINES[log]


def _remove(checkpoint: Store, log: str, name: str) -> None:
    checkpoint.remove(f"{log}/{name}")
    checkpoint.remove(f"{log}/.{name}.crc")
