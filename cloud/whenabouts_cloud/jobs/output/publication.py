"""Makes the results of a batch visible at once: in a folder by a rename, in an object store by a last object.

    OUT/batch=00000012/part-00000.parquet    results
    OUT/batch=00000012/_input.json           digest of their input, and when they were published (us since 1970 UTC,
                                             `published_us`); in an object store it is written last

An object store has no rename. There a batch is published when its `_input.json` exists; readers that look at Parquet files
only see those of a batch a moment before, and after a kill until the job repeats the batch. A batch without that object is
removed and written anew.
"""

import contextlib
import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from whenabouts_cloud.delivery.published import INPUT
from whenabouts_cloud.durable import make_folder, sync, write_durably
from whenabouts_cloud.jobs.output.task_files import TaskFiles
from whenabouts_cloud.landing.store import Store

MADE, EARLIER = ".tmp-batch", ".tmp-earlier"
WHOLE = "whole"  # as digest of a result of a whole landing


class Publication(Protocol):
    """Publishes files of tasks as folders of one output."""

    def exists(self, name: str) -> bool:
        """True if this folder is published."""

    def appear(self, files: Mapping[str, int], name: str, digest: str) -> bool:
        """Publish files as this folder, with the digest of their input; False if it exists already."""

    def replace(self, files: Mapping[str, int], name: str) -> None:
        """Publish files as this folder in place of an earlier one."""

    def mend(self, name: str) -> None:
        """Undo what a kill left of `replace`."""


def publication(out: Store, files: TaskFiles, schema: pa.Schema) -> Publication:
    """The publication of an output. schema: of a result without files."""
    return _InBucket(out, files, schema) if out.local is None else _InFolder(out.local, files, schema)


def digest_in(out: Store, name: str) -> str | None:
    """Digest of the input of a published folder; None without a readable one."""
    try:
        return str(json.loads(out.read(f"{name}/{INPUT}"))["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


class _InFolder:
    """By renames. A complete result replaces an earlier one by two: a kill between them leaves the earlier one hidden."""

    def __init__(self, out: Path, files: TaskFiles, schema: pa.Schema) -> None:
        self._out, self._files, self._schema = out, files, schema

    def exists(self, name: str) -> bool:
        return (self._out / name).exists()

    def appear(self, files: Mapping[str, int], name: str, digest: str) -> bool:
        target = self._out / name
        if target.exists():
            return False
        made = self._gathered(files)
        write_durably(made / INPUT, _input(digest))
        make_folder(target.parent)
        made.rename(target)
        sync(target.parent)
        return True

    def replace(self, files: Mapping[str, int], name: str) -> None:
        target, earlier = self._out / name, self._out / EARLIER
        made = self._gathered(files)
        write_durably(made / INPUT, _input(WHOLE))
        shutil.rmtree(earlier, ignore_errors=True)
        if target.exists():
            target.rename(earlier)
        made.rename(target)
        sync(self._out)
        shutil.rmtree(earlier, ignore_errors=True)

    def mend(self, name: str) -> None:
        earlier = self._out / EARLIER
        if earlier.exists() and not (self._out / name).exists():
            earlier.rename(self._out / name)

    def _gathered(self, files: Mapping[str, int]) -> Path:
        """Move files of tasks into a hidden folder and return it."""
        made = self._out / MADE
        shutil.rmtree(made, ignore_errors=True)
        self._files.move(files, Store.at(made), self._schema)
        sync(made)
        return made


class _InBucket:
    """By a last object."""

    def __init__(self, out: Store, files: TaskFiles, schema: pa.Schema) -> None:
        self._out, self._files, self._schema = out, files, schema

    def exists(self, name: str) -> bool:
        return self._out.sizes([f"{name}/{INPUT}"])[0] is not None

    def appear(self, files: Mapping[str, int], name: str, digest: str) -> bool:
        if self.exists(name):
            return False
        with contextlib.suppress(FileNotFoundError):
            self._out.remove_folder(name)
        self._files.move(files, self._out.at_folder(name), self._schema)
        self._out.write(f"{name}/{INPUT}", _input(digest))
        return True

    def replace(self, files: Mapping[str, int], name: str) -> None:
        self._out.remove(f"{name}/{INPUT}")
        self.appear(files, name, WHOLE)

    def mend(self, name: str) -> None:
        """Nothing can be restored: the files of an earlier result may be gone."""


def _input(digest: str) -> bytes:
    return json.dumps({"digest": digest, "published_us": time.time_ns() // 1000}).encode()
