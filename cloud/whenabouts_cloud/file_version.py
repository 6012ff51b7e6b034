"""The version of a file, to notice that it was changed or replaced."""

from pathlib import Path


def file_version(path: Path) -> tuple[int, int, int] | None:
    """Identify the version of a file; None while there is no file, such as while an editor replaces it."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
