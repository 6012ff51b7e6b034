"""Simulated disks: folders of the real file system, and what of each a power cut would keep.

Files are real, so the product reads and writes them as ever. What it changes is noted on the way: a power cut keeps of each
file what was synced last, and any prefix of what was written since; and of each folder the names that it had when it was
synced last, and any prefix of the changes since. Stricter than common file systems, which keep changes of several folders in
order: a name that is moved to another folder may be lost. Within a folder it has the old name or the new one.
`sync_file_system` and the syncs of SQLite count as well.

What goes through `os`, `open` and SQLite is noted when it happens; files that libraries write by themselves (pyarrow) are
found when their folder is looked at, as not synced.
"""

import builtins
import contextlib
import errno
import io
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from whenabouts_cloud import durable
from whenabouts_sim.chaos.machine.running import Killed, running
from whenabouts_sim.chaos.machine.sqlite_files import SQLITE_FULL, SQLITE_OK, WatchedFiles

SQLITE_IOERR = 10
ROT_TRIES = 20
Write = tuple[int, bytes | None]
"""A write of SQLite: offset and bytes; or the size after a truncation, and None."""


@dataclass(eq=False)
class File:
    """synced: what it held when it was synced last. writes: of SQLite, since then; None for a file of others. gone_ns: when
    it was written, if its name is gone: a power cut may bring it back.
    """

    synced: bytearray = field(default_factory=bytearray)
    writes: list[Write] | None = None
    gone_ns: int = 0

    def sync(self, path: str) -> None:
        """What it holds now survives a power cut."""
        if self.writes is None:
            with _REAL_OPEN(path, "rb") as file:
                self.synced = bytearray(file.read())
            return
        for write in self.writes:
            _apply(self.synced, *write)
        self.writes.clear()

    def after_power_cut(self, path: str, chance: Random) -> bytes:
        """What a power cut leaves: the last write that is kept may be torn."""
        if self.writes is None:
            with _REAL_OPEN(path, "rb") as file:
                now = file.read()
            if now == self.synced:
                return now
            begin = len(self.synced) if now.startswith(self.synced) else 0
            return chance.choice((bytes(self.synced), now, now[: chance.randint(begin, len(now))]))
        content = bytearray(self.synced)
        kept = chance.choice((0, len(self.writes), chance.randint(0, len(self.writes))))
        for write in self.writes[:kept]:
            _apply(content, *write)
        if kept < len(self.writes):
            offset, data = self.writes[kept]
            if data:
                _apply(content, offset, data[: chance.choice((0, chance.randint(0, len(data))))])
        return bytes(content)


@dataclass(eq=False)
class Folder:
    """now: what it holds by name. synced: what it held when it was synced; changes: since then, names with None if they are
    gone.
    """

    now: "dict[str, File | Folder]" = field(default_factory=dict)
    synced: "dict[str, File | Folder]" = field(default_factory=dict)
    changes: "list[dict[str, File | Folder | None]]" = field(default_factory=list)

    def change(self, name: str, node: "File | Folder | None") -> None:
        """A name appears, leads elsewhere, or is gone."""
        self._change({name: node})

    def rename(self, old: str, new: str, node: "File | Folder") -> None:
        """A name becomes another one, in one step."""
        self._change({old: None, new: node})

    def _change(self, names: "dict[str, File | Folder | None]") -> None:
        self.changes.append(names)
        _apply_names(self.now, names)

    def sync(self) -> None:
        """Its names survive a power cut from now on."""
        self.synced = dict(self.now)
        self.changes.clear()

    def after_power_cut(self, chance: Random) -> "dict[str, File | Folder]":
        """The names that a power cut leaves."""
        names = dict(self.synced)
        kept = chance.choice((0, len(self.changes), chance.randint(0, len(self.changes))))
        for change in self.changes[:kept]:
            _apply_names(names, change)
        return names


def _apply_names(names: "dict[str, File | Folder]", change: "dict[str, File | Folder | None]") -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


@dataclass(eq=False)
class Disk:
    """The disk of one machine. full: nothing can be written now. failed: a write was refused, once. folders_left: syncs of
    folders before the one that is refused; None: none is.
    """

    root: Path
    full: bool = False
    failed: bool = False
    folders_left: int | None = None
    tree: Folder = field(default_factory=Folder)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True)
        self._prefix = f"{self.root}/"

    def about_to_write(self) -> None:
        """Let the process that runs now count a write.

        Raises:
            Killed: it is dead.
            OSError: the disk is full.
        """
        process = running()
        if process is not None:
            process.about_to_write()
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.root))

    def fail(self) -> None:
        """Refuse the write that is about to happen."""
        self.failed = True
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(self.root))

    def _about_to_sync_folder(self) -> None:
        process = running()
        if process is not None:
            process.about_to_sync_folder()
        if self.folders_left is None:
            return
        self.folders_left -= 1
        if self.folders_left < 0:
            self.folders_left = None
            self.fail()

    def place(self, path: str) -> tuple[Folder, str]:
        """The folder that holds a path, and its name there."""
        *above, name = path[len(self._prefix) :].split("/")
        folder = self.tree
        for one in above:
            found = folder.now.get(one)
            if not isinstance(found, Folder):
                found = Folder()
                folder.change(one, found)
            folder = found
        return folder, name

    def node(self, path: str) -> "File | Folder":
        """What is at a path."""
        if len(path) < len(self._prefix):
            return self.tree
        folder, name = self.place(path)
        found = folder.now.get(name)
        if found is None:
            found = Folder() if os.path.isdir(path) else File()
            folder.change(name, found)
        return found

    def look(self, path: str, folder: Folder) -> None:
        """Find what others have made or removed in a folder."""
        names = set(os.listdir(path))
        for name in sorted(names - folder.now.keys()):
            folder.change(name, Folder() if os.path.isdir(f"{path}/{name}") else File())
        for name in sorted(folder.now.keys() - names):
            folder.change(name, None)

    def sync(self, path: str) -> None:
        """A file or folder is synced.

        Raises:
            Killed: the process ends before this sync of a folder.
            OSError: this sync of a folder is refused.
        """
        node = self.node(path)
        if isinstance(node, Folder):
            self._about_to_sync_folder()
            self.look(path, node)
            node.sync()
        else:
            node.sync(path)

    def sync_all(self) -> None:
        """All is synced.

        Raises:
            Killed: the process ends before it.
            OSError: this sync is refused.
        """
        self._about_to_sync_folder()

        def through(path: str, folder: Folder) -> None:
            self.look(path, folder)
            folder.sync()
            for name, node in folder.now.items():
                inner = f"{path}/{name}"
                if isinstance(node, Folder):
                    through(inner, node)
                else:
                    node.sync(inner)

        through(str(self.root), self.tree)

    def rot(self, path: Path, chance: Random, first: int = 0) -> None:
        """Change a bit of a file at rest, from a byte on; nothing happens to one that is not there.

        Mostly of a byte that is not zero: much of a database is empty, and nobody reads it.
        """
        size = path.stat().st_size if path.exists() else 0
        if size <= first:
            return
        with _REAL_OPEN(path, "rb") as file:
            content = file.read()
        written_ns = path.stat().st_mtime_ns
        tries = [chance.randrange(first, size) for _ in range(ROT_TRIES)]
        at, bit = next((one for one in tries if content[one]), tries[0]), 1 << chance.randrange(8)
        with _REAL_OPEN(path, "r+b") as file:
            file.seek(at)
            changed = file.read(1)[0] ^ bit
            file.seek(at)
            file.write(bytes([changed]))
        os.utime(path, ns=(written_ns, written_ns))  # nobody has written it
        node = self.node(str(path))
        if isinstance(node, File) and at < len(node.synced):
            node.synced[at] ^= bit

    def cut_power(self, chance: Random) -> None:
        """Leave what survives; all processes of the machine must be dead."""

        def through(path: str, folder: Folder) -> None:
            if os.path.isdir(path):
                self.look(path, folder)
            for name, node in folder.now.items():
                paths[id(node)] = f"{path}/{name}"
                times[id(node)] = os.stat(f"{path}/{name}").st_mtime_ns
                if isinstance(node, Folder):
                    through(f"{path}/{name}", node)

        def build(path: str, names: "dict[str, File | Folder]") -> Folder:
            _MKDIR(path)
            made = Folder()
            for name, node in names.items():
                if isinstance(node, Folder):
                    made.now[name] = build(f"{path}/{name}", node.after_power_cut(chance))
                    continue
                content = contents.get(id(node), bytes(node.synced))
                with _REAL_OPEN(f"{path}/{name}", "wb") as file:
                    file.write(content)
                written_ns = times.get(id(node)) or node.gone_ns or now_ns
                os.utime(f"{path}/{name}", ns=(written_ns, written_ns))
                made.now[name] = File(bytearray(content), None if node.writes is None else [])
            made.synced = dict(made.now)
            os.utime(path, ns=(now_ns, now_ns))
            return made

        now_ns = time.time_ns()
        paths, times = dict[int, str](), dict[int, int]()
        through(str(self.root), self.tree)
        contents = {
            key: node.after_power_cut(paths[key], chance)
            for key, node in ((id(one), one) for one in _files(self.tree))
        }  # fmt: skip
        names = self.tree.after_power_cut(chance)
        _remove(str(self.root))
        self.tree = build(str(self.root), names)


def _files(folder: Folder) -> Iterator[File]:
    for node in folder.now.values():
        if isinstance(node, Folder):
            yield from _files(node)
        else:
            yield node


def _remove(path: str) -> None:
    for name in os.listdir(path):
        inner = f"{path}/{name}"
        if os.path.isdir(inner):
            _remove(inner)
        else:
            _UNLINK(inner)
    _RMDIR(path)


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        return
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


class Disks:
    """All disks of a simulation, below one folder; while they are in use, `os`, `open` and SQLite go through here."""

    def __init__(self, root: Path, now_us: Callable[[], int] = lambda: 0) -> None:
        self.root, self._now_us = root.resolve(), now_us
        self._appeared: dict[str, int] = {}
        self._prefix = f"{self.root}/"
        self._by_name: dict[str, Disk] = {}
        self._real: dict[str, Callable[..., Any]] = {}

    def add(self, name: str) -> Disk:
        """A new, empty disk."""
        disk = self._by_name[name] = Disk(self.root / name)
        return disk

    def of(self, path: str) -> Disk | None:
        """The disk of a path, None for a path elsewhere."""
        if not path.startswith(self._prefix):
            return None
        return self._by_name.get(path[len(self._prefix) :].partition("/")[0])

    def appeared_us(self, path: Path) -> int:
        """When a file was renamed to this path, 0 if it was not."""
        return self._appeared.get(str(path), 0)

    def _changed(self, path: str) -> None:
        """A file or folder changed now, by the clock of its machine."""
        now_ns = time.time_ns()
        os.utime(path, ns=(now_ns, now_ns))

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Note what happens on the disks."""
        here: dict[tuple[Any, str], Callable[..., Any]] = {
            (os, "fsync"): self._fsync, (os, "rename"): self._rename, (os, "replace"): self._rename,
            (os, "unlink"): self._unlink, (os, "remove"): self._unlink, (os, "mkdir"): self._mkdir,
            (os, "rmdir"): self._rmdir, (os, "open"): self._os_open,
            (builtins, "open"): self._open, (io, "open"): self._open,
            (durable, "_SYNCFS"): self._syncfs, (sqlite3, "connect"): self._connect,
        }  # fmt: skip
        real = {place: getattr(*place) for place in here}
        for (module, name), function in here.items():
            setattr(module, name, function)
        files = _sqlite_files()
        files.watches, files.reported, files.refuse = self._watches, self._reported, self._refuse
        try:
            yield
        finally:
            files.watches = _nothing
            for (module, name), function in real.items():
                setattr(module, name, function)

    def _fsync(self, fd: int) -> None:
        path = os.readlink(f"/proc/self/fd/{fd}")
        disk = self.of(path)
        if disk is None:
            _FSYNC(fd)
            return
        disk.about_to_write()
        disk.sync(path)

    def _syncfs(self, fd: int) -> int:
        path = os.readlink(f"/proc/self/fd/{fd}")
        disk = self.of(f"{path}/")
        if disk is None:
            return int(_SYNCFS(fd)) if _SYNCFS is not None else 0
        disk.about_to_write()
        disk.sync_all()
        return 0

    def _rename(self, source: Any, target: Any) -> None:
        old, new = os.fspath(source), os.fspath(target)
        disk = self.of(old)
        if disk is None:
            _RENAME(old, new)
            return
        disk.about_to_write()
        node = disk.node(old)
        if isinstance(node, Folder):
            disk.look(old, node)
        _RENAME(old, new)
        self._appeared[new] = self._now_us()
        self._changed(new)
        self._changed(os.path.dirname(new))
        self._changed(os.path.dirname(old))
        before, after = disk.place(old), disk.place(new)
        if before[0] is after[0]:
            before[0].rename(before[1], after[1], node)
            return
        before[0].change(before[1], None)
        after[0].change(after[1], node)

    def _unlink(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._gone(_UNLINK, path, dir_fd)

    def _rmdir(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._gone(_RMDIR, path, dir_fd)

    def _gone(self, real: Callable[..., None], path: Any, dir_fd: int | None) -> None:
        name = os.fspath(path)
        full = name if dir_fd is None else f"{os.readlink(f'/proc/self/fd/{dir_fd}')}/{name}"
        disk = self.of(full) if isinstance(full, str) else None
        if disk is None:
            real(name, dir_fd=dir_fd)
            return
        if not os.path.lexists(full):
            real(full)  # raises
        with contextlib.suppress(OSError):  # a full disk has room for this
            disk.about_to_write()
        folder, last = disk.place(full)
        node = folder.now.get(last)
        if isinstance(node, File):
            node.gone_ns = os.stat(full).st_mtime_ns
        real(full)
        self._changed(os.path.dirname(full))
        folder.change(last, None)

    def _mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        name = os.fspath(path)
        disk = self.of(name) if dir_fd is None else None
        if disk is None:
            _MKDIR(name, mode, dir_fd=dir_fd)
            return
        if not os.path.lexists(name):
            disk.about_to_write()
        _MKDIR(name, mode)
        self._changed(os.path.dirname(name))
        disk.node(name)

    def _os_open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        name = os.fspath(path)
        disk = self.of(name) if flags & os.O_CREAT and dir_fd is None else None
        if disk is None:
            return _OS_OPEN(name, flags, mode, dir_fd=dir_fd)
        disk.about_to_write()
        opened = _OS_OPEN(name, flags, mode)
        disk.node(name)
        return opened

    def _open(self, file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        path = os.fspath(file) if isinstance(file, str | os.PathLike) else ""
        disk = self.of(path) if isinstance(path, str) and set(mode) & set("wax+") else None
        if disk is None:
            return _REAL_OPEN(file, mode, *args, **options)
        disk.about_to_write()
        opened = _REAL_OPEN(file, mode, *args, **options)
        disk.node(path)
        _belongs_to_process(opened)
        return opened

    def _connect(self, database: Any, *args: Any, **options: Any) -> sqlite3.Connection:
        opened: sqlite3.Connection = _CONNECT(database, *args, **options)
        if self.of(os.fspath(database)) is not None:
            _belongs_to_process(opened)
        return opened

    def _watches(self, path: str) -> bool:
        return self.of(path) is not None

    def _refuse(self, operation: str, path: str) -> int:
        disk = self.of(path)
        assert disk is not None
        try:
            disk.about_to_write()
        except Killed:
            return SQLITE_IOERR
        except OSError:  # a full disk has room for less
            return SQLITE_FULL if operation in ("create", "write") else SQLITE_OK
        return SQLITE_OK

    def _reported(self, operation: str, path: str, offset: int, data: bytes) -> None:
        disk = self.of(path)
        assert disk is not None
        folder, name = disk.place(path)
        if operation == "delete":
            folder.change(name, None)
            if offset:
                folder.sync()
            return
        node = folder.now.get(name)
        if not isinstance(node, File):
            node = File()
            folder.change(name, node)
        if node.writes is None:
            node.writes = []
        if operation == "write":
            node.writes.append((offset, data))
        elif operation == "truncate":
            node.writes.append((offset, None))
        elif operation == "sync":
            node.sync(path)
            if name.endswith(("-wal", "-journal")):  # SQLite syncs the folder with the first sync of these
                folder.sync()


def _belongs_to_process(opened: Any) -> None:
    process = running()
    if process is not None:
        process.opened.append(opened)


def _nothing(_path: str) -> bool:
    return False


_FILES: list[WatchedFiles] = []


def _sqlite_files() -> WatchedFiles:
    """The watched files of this interpreter: SQLite keeps what is registered once."""
    if not _FILES:
        _FILES.append(WatchedFiles(_nothing, lambda *_: None))
    return _FILES[0]


_FSYNC, _RENAME, _UNLINK, _RMDIR, _MKDIR, _OS_OPEN = os.fsync, os.rename, os.unlink, os.rmdir, os.mkdir, os.open
_REAL_OPEN, _CONNECT, _SYNCFS = builtins.open, sqlite3.connect, durable._SYNCFS
