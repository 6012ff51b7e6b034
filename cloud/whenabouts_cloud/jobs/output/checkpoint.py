"""Reads Spark's checkpoint of a query: which input a micro-batch has, and whether the checkpoint is older than the results.

    _checkpoint/offsets/12       begun micro-batches: how far the landing is read
    _checkpoint/commits/12       finished ones
    _checkpoint/state/           rows kept between micro-batches

Spark renames these files into place and syncs none of them, so a power cut can lose the newest ones or leave them empty. The
sink syncs them all before results appear (`durable.sync_file_system`). Then a file that is lost or empty belongs to a
micro-batch that has published nothing.
"""

import json
import shutil
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

CHECKPOINT = "_checkpoint"
NONE = "-"  # in a file of offsets: nothing is known of the source


class LostCheckpointError(ValueError):
    """Results are newer than the checkpoint, or come from another input; the text names the folder and what to do."""


def checkpoint_of(out: Path) -> Path:
    """Return the checkpoint folder of an output folder, ready for Spark; Spark does not start from unfinished files.

    Removes what a kill or a power cut left unfinished: files of micro-batches that have published nothing, and the whole
    folder before the first one began.
    """
    folder = out.resolve() / CHECKPOINT
    _remove_unfinished(folder)
    if folder.exists() and _newest(folder / "offsets") < 0:
        shutil.rmtree(folder)
    return folder


def unfinished(out: Path) -> bool:
    """True if a micro-batch has begun and is not committed: Spark repeats it first."""
    return _newest(out / CHECKPOINT / "offsets") > _newest(out / CHECKPOINT / "commits")


def check_checkpoint(out: Path) -> None:
    """Check that the checkpoint knows all published micro-batches.

    Raises:
        LostCheckpointError: it does not, so Spark would give their numbers to other input.
    """
    known = _newest(checkpoint_of(out) / "offsets")
    published = max((int(folder.name.removeprefix("batch=")) for folder in _published(out)), default=-1)
    if published > known:
        raise LostCheckpointError(
            f"output {out}: found results up to batch {published} and a checkpoint up to "
            f"{f'batch {known}' if known >= 0 else 'no batch'}, expected it to know every published batch; "
            f"its last files were lost, as by a power cut: {_begin_again(out)}"
        )


def check_same_input(out: Path, folder: Path, found: str | None, digest: str) -> None:
    """Check that a published folder has the digest of the micro-batch that would be published there.

    Raises:
        LostCheckpointError: it has another one, or none.
    """
    if found != digest:
        raise LostCheckpointError(
            f"output {out}: found {folder.relative_to(out)} with the results of another input (digest {found}), expected "
            f"{digest}; the checkpoint is not the one that they were computed with: {_begin_again(out)}"
        )


class Input(NamedTuple):
    """What a micro-batch reads: from one offset of the landing to another (`landing.history`)."""

    start: dict[str, Any]
    end: dict[str, Any]

    @property
    def digest(self) -> str:
        """Digest of the two offsets: the files between them never change."""
        return blake2b(json.dumps(self, sort_keys=True).encode(), digest_size=16).hexdigest()


def input_of(checkpoint: Path, batch_id: int) -> Input:
    """The input of a micro-batch that has begun."""
    return Input(*(_offset(checkpoint / "offsets" / str(number)) for number in (batch_id - 1, batch_id)))


def _begin_again(out: Path) -> str:
    return f"delete {out} and start again, or take another --out; all readings of the landing are then read anew"


def _published(out: Path) -> Iterator[Path]:
    for pattern in ("batch=*", "_*/batch=*"):
        yield from (folder for folder in out.glob(pattern) if folder.name.removeprefix("batch=").isdecimal())


def _newest(log: Path) -> int:
    """Highest number of a file in a folder of the checkpoint, -1 without any."""
    names = (file.name.removesuffix(".compact") for file in log.glob("*"))
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def _offset(file: Path) -> dict[str, Any]:
    """How far the landing is read after a micro-batch; nothing before the first one."""
    if not file.exists():
        return {}
    line = file.read_text().splitlines()[2]
    return {} if line == NONE else dict(json.loads(line))


def _remove_unfinished(checkpoint: Path) -> None:
    logs = [checkpoint / "offsets", checkpoint / "commits"]
    for log in logs:
        while (newest := _newest(log)) >= 0:
            file = log / f"{newest}.compact" if (log / f"{newest}.compact").exists() else log / str(newest)
            if _whole(file):
                break
            _remove(file)
    offsets = checkpoint / "offsets"
    while (newest := _newest(checkpoint / "commits")) > _newest(offsets):
        _remove(checkpoint / "commits" / str(newest))


def _whole(file: Path) -> bool:
    """True if a file of the checkpoint is complete, and its checksum is either complete or absent."""
    checksum = file.with_name(f".{file.name}.crc")
    if checksum.exists() and checksum.stat().st_size != 8 + 4 * -(-file.stat().st_size // 512):
        checksum.unlink()  # Spark reads the file without it
    lines = file.read_bytes().split(b"\n")
    try:
        for line in lines[1:]:
            if line and line != NONE.encode():
                json.loads(line)
    except ValueError:
        return False
    return lines[0].startswith(b"v") and len(lines) > 1


def _remove(file: Path) -> None:
    file.unlink()
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
