"""Files below a URI: a local folder, or a bucket of an object store, by `pyarrow.fs`.

    Store.at("landing")    Store.at("file:///data/landing")    Store.at("s3://bucket/landing")    gs:, abfs:, hdfs: likewise

A file appears whole under its name or not at all. In a local folder it is written under a hidden name, synced and renamed
(`durable`); in an object store one PUT makes it appear, and the store's answer says that it is durable. Paths are relative
to the URI, with "/" between names. Names that begin with "." or "_" are hidden from readers of the readings.

S3 is chosen by the usual variables: AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_PROFILE. A
store keeps those of the process that has made it, so that the workers of a cluster reach the same one.
"""

import contextlib
import functools
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from whenabouts_cloud.durable import appearing, make_folder, sync

IN_MEMORY = 64 << 20  # bytes of a file that are kept in memory before it is sent to an object store
COPIED = 1 << 20


class Entry(NamedTuple):
    """A file or folder in a listing. mtime_ns: when a file was last changed, -1 if the listing does not say it."""

    name: str
    mtime_ns: int = -1


@dataclass(frozen=True)
class Store:
    """Files below one URI. It can be pickled; each process connects by itself. variables: those of S3, with secrets."""

    uri: str
    variables: tuple[tuple[str, str], ...] = field(default=(), repr=False, compare=False)

    @staticmethod
    def at(place: "str | Path | Store") -> "Store":
        """The store of a path or URI; a path is made absolute. s3a: is another name of s3:.

        Raises:
            ValueError: the scheme of the URI is not known.
        """
        if isinstance(place, Store):
            return place
        text = re.sub("^s3[an]:", "s3:", os.fspath(place))
        if urlsplit(text).scheme in ("", "file"):
            path = Path(text if "://" not in text else urlsplit(text).path)
            return Store(str(path.absolute()))
        chosen = [(name, value) for name, value in os.environ.items() if name.startswith("AWS_")]
        store = Store(text.rstrip("/"), tuple(sorted(chosen)) if text.startswith("s3:") else ())
        try:
            _ = store._place
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"{text}: found no such kind of store ({error}), expected a path, s3:, gs:, abfs: or hdfs:"
            ) from None
        return store

    @functools.cached_property
    def local(self) -> Path | None:
        """The folder, if it is on a file system of this machine."""
        return Path(self.uri) if self.uri.startswith("/") else None

    def at_folder(self, name: str) -> "Store":
        """The store of a folder of this one; the same store for ""."""
        return Store(f"{self.uri}/{name}", self.variables) if name else self

    def entries(self, folder: str = "") -> list[Entry]:
        """The files and folders of a folder, in any order; none if it does not exist."""
        if self.local is not None:
            try:
                return [Entry(name) for name in os.listdir(f"{self.uri}/{folder}")]
            except (FileNotFoundError, NotADirectoryError):
                return []
        system, root = self._place
        selector = fs.FileSelector(f"{root}/{folder}".rstrip("/"), allow_not_found=True)
        return [
            Entry(one.base_name, -1 if one.mtime_ns is None else one.mtime_ns) for one in system.get_file_info(selector)
        ]

    def sizes(self, paths: Iterable[str]) -> list[int | None]:
        """The size of each file, None where there is none; in an object store the files are asked for side by side."""
        if self.local is not None:
            return [_local_size(f"{self.uri}/{path}") for path in paths]
        system, root = self._place
        found = system.get_file_info([f"{root}/{path}" for path in paths])
        return [one.size if one.type == fs.FileType.File else None for one in found]

    def changed_ns(self, path: str) -> int | None:
        """When a local file or the names in a local folder were last changed; None elsewhere, and without one."""
        if self.local is None:
            return None
        try:
            return os.stat(f"{self.uri}/{path}").st_mtime_ns
        except (FileNotFoundError, NotADirectoryError):
            return None

    def exists(self) -> bool:
        """True if the folder exists, or anything lies below it."""
        if self.local is not None:
            return self.local.is_dir()
        system, root = self._place
        return bool(system.get_file_info(root).type == fs.FileType.Directory) or bool(self.entries())

    def read(self, path: str) -> bytes:
        """The content of a file.

        Raises:
            FileNotFoundError: there is none.
        """
        if self.local is not None:
            return (self.local / path).read_bytes()
        with self.open(path) as file:
            data: bytes = file.read()
        return data

    def open(self, path: str) -> pa.NativeFile:
        """A file to read from anywhere in it.

        Raises:
            FileNotFoundError: there is none.
        """
        if self.local is not None:
            return pa.OSFile(str(self.local / path))
        system, root = self._place
        return system.open_input_file(f"{root}/{path}")

    def write(self, path: str, data: bytes) -> None:
        """Write a file, replacing an earlier one; durable when this returns.

        Raises:
            OSError: it is not durable; others may see it even so.
        """
        with self.writing(path) as file:
            file.write(data)

    @contextlib.contextmanager
    def writing(self, path: str) -> Iterator[IO[bytes]]:
        """Open a file that appears, durable, when the block succeeds."""
        if self.local is not None:
            make_folder((self.local / path).parent)
            with appearing(self.local / path) as file:
                yield file
            return
        system, root = self._place
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as kept:
            yield kept
            kept.seek(0)
            with system.open_output_stream(f"{root}/{path}") as stream:
                while data := kept.read(COPIED):
                    stream.write(data)

    def move(self, path: str, other: "Store", name: str) -> None:
        """Give a file another place in the same file system or object store; an object is copied, and stays here too."""
        if self.local is not None:
            (self.local / path).rename(other.place(name)[1])
            return
        system, root = self._place
        system.copy_file(f"{root}/{path}", other.place(name)[1])

    def remove(self, path: str) -> None:
        """Delete a file, if it exists."""
        if self.local is not None:
            (self.local / path).unlink(missing_ok=True)
            return
        system, root = self._place
        with contextlib.suppress(FileNotFoundError):
            system.delete_file(f"{root}/{path}")

    def remove_folder(self, folder: str) -> None:
        """Delete a folder with all below it, if it exists."""
        if self.local is not None:
            shutil.rmtree(self.local / folder, ignore_errors=True)
            if (self.local / folder).parent.is_dir():
                sync((self.local / folder).parent)
            return
        system, root = self._place
        with contextlib.suppress(FileNotFoundError):
            system.delete_dir(f"{root}/{folder}".rstrip("/"))

    def place(self, path: str) -> tuple[fs.FileSystem, str]:
        """The file system of pyarrow, and the path of a file in it."""
        if self.local is not None:
            return fs.LocalFileSystem(), str(self.local / path)
        system, root = self._place
        return system, f"{root}/{path}"

    @property
    def _place(self) -> tuple[fs.FileSystem, str]:
        return _connected(self.uri, self.variables)


@functools.lru_cache(maxsize=64)
def _connected(uri: str, variables: tuple[tuple[str, str], ...]) -> tuple[fs.FileSystem, str]:
    """The file system of a URI and the path in it, once a process."""
    known = dict(variables)
    endpoint = known.get("AWS_ENDPOINT_URL_S3") or known.get("AWS_ENDPOINT_URL")
    if "AWS_ACCESS_KEY_ID" not in known and endpoint is None:
        system, path = fs.FileSystem.from_uri(uri)
        return system, path
    options = {
        "access_key": known.get("AWS_ACCESS_KEY_ID"),
        "secret_key": known.get("AWS_SECRET_ACCESS_KEY"),
        "session_token": known.get("AWS_SESSION_TOKEN"),
        "region": known.get("AWS_REGION") or known.get("AWS_DEFAULT_REGION") or ("us-east-1" if endpoint else None),
    }
    if endpoint is not None:
        options |= {"scheme": urlsplit(endpoint).scheme, "endpoint_override": urlsplit(endpoint).netloc}
    given = {name: value for name, value in options.items() if value is not None}
    # A small file is then one PUT, instead of the three requests of a multipart upload.
    return fs.S3FileSystem(allow_delayed_open=True, **given), uri.removeprefix("s3://")


def _local_size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except (FileNotFoundError, NotADirectoryError):
        return None
