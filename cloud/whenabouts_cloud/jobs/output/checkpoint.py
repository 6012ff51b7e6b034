"""Reads Spark's checkpoint of a query: which input a micro-batch has, and whether the checkpoint is older than the results.

    _checkpoint/offsets/12       begun micro-batches: how far each source is read
    _checkpoint/commits/12       finished ones
    _checkpoint/sources/0/7      files that a source has found, as JSON lines; `9.compact` repeats those before it
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


class SourceFile(NamedTuple):
    """A file of a micro-batch's input: number of its source, its path as Spark writes it, and when it was written, in ms."""

    source: int
    path: str
    written_ms: int


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


def input_of(checkpoint: Path, batch_id: int) -> list[SourceFile]:
    """The files of a micro-batch that has begun, from all sources, sorted. Reads only the logs of these files."""
    before, now = (_offsets(checkpoint / "offsets" / str(number)) for number in (batch_id - 1, batch_id))
    files = []
    for source, upto in enumerate(now):
        since = before[source] if source < len(before) else -1
        log = checkpoint / "sources" / str(source)
        for number in range(since + 1, upto + 1):
            files += [
                SourceFile(source, one["path"], one["timestamp"])
                for one in _entries(log, number)
                if one["batchId"] == number
            ]
    return sorted(files)


def digest_of(files: list[SourceFile]) -> str:
    """Digest of an input. Paths count from the last folder on, so that a landing may be moved as a whole."""
    text = json.dumps([(one.source, one.path.split("/")[-2:], one.written_ms) for one in files])
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _begin_again(out: Path) -> str:
    return f"delete {out} and start again, or take another --out; all readings of the landing are then read anew"


def _published(out: Path) -> Iterator[Path]:
    for pattern in ("batch=*", "_*/batch=*"):
        yield from (folder for folder in out.glob(pattern) if folder.name.removeprefix("batch=").isdecimal())


def _newest(log: Path) -> int:
    """Highest number of a file in a folder of the checkpoint, -1 without any."""
    names = (file.name.removesuffix(".compact") for file in log.glob("*"))
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def _offsets(file: Path) -> list[int]:
    """How far each source is read after a micro-batch: number of the last file of its log, -1 for none."""
    if not file.exists():
        return []
    return [-1 if line == NONE else json.loads(line)["logOffset"] for line in file.read_text().splitlines()[2:]]


def _entries(log: Path, number: int) -> list[dict[str, Any]]:
    for name in (str(number), f"{number}.compact"):
        if (log / name).exists():
            return [json.loads(line) for line in (log / name).read_text().splitlines()[1:]]
    raise LostCheckpointError(f"checkpoint {log}: found no file {number}, expected the one that the offsets name")


def _remove_unfinished(checkpoint: Path) -> None:
    logs = [checkpoint / "offsets", checkpoint / "commits", *checkpoint.glob("sources/*")]
    for log in logs:
        while (newest := _newest(log)) >= 0:
            file = log / f"{newest}.compact" if (log / f"{newest}.compact").exists() else log / str(newest)
            if _whole(file):
                break
            _remove(file)
    offsets = checkpoint / "offsets"
    while (newest := _newest(offsets)) >= 0:
        reached = (_newest(checkpoint / "sources" / str(n)) for n in range(len(_offsets(offsets / str(newest)))))
        if all(upto <= found for upto, found in zip(_offsets(offsets / str(newest)), reached, strict=True)):
            break
        _remove(offsets / str(newest))
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
