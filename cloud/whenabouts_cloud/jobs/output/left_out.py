"""Files of a landing that a query leaves out because they are damaged.

    OUT/_left_out.json                  their paths below the landing; written before the micro-batch that lacks them
    LANDING/_damaged/left_out/          an empty file for each, if it can be written: `landing check` reads them

Spark fails at a damaged file, but ignores one that is empty or gone, and takes a missing column for nulls. So the end of
each new file is read before a micro-batch, some 0.3 ms a file, and all of it if Spark fails. The query then ends and is
started again without the damaged files. The list keeps a micro-batch that is repeated as it was. Spark never reads a name
twice: a file that is repaired, or put back, gets a new name by `landing check --repair`.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from whenabouts_cloud.durable import write_durably
from whenabouts_cloud.jobs.output.checkpoint import SourceFile
from whenabouts_cloud.landing.files import LEFT_OUT_DIR, DamagedFileError, check_file, data_files, read_footer
from whenabouts_cloud.landing.schema import FRONTIER_DIR

LEFT_OUT = "_left_out.json"
READERS = 4  # files that are read at a time
UNREADABLE = "FAILED_READ_FILE"  # Spark's name for the error


class DamagedInputError(Exception):
    """A query must start again without these files: their problems by path below the landing."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {problem}" for name, problem in problems.items()))
        self.problems = dict(problems)


@dataclass(frozen=True)
class LeftOut:
    """The damaged files of a query over `landing` that publishes to `out`."""

    landing: Path
    out: Path

    def names(self) -> list[str]:
        """Paths of the files below the landing."""
        try:
            return [str(name) for name in json.loads((self.out / LEFT_OUT).read_bytes())]
        except FileNotFoundError:
            return []

    def check(self, files: Iterable[SourceFile], whole: bool = False) -> None:
        """Check the new files of a micro-batch, their footers or the whole files.

        Raises:
            DamagedInputError: some are damaged; they are on the list now.
        """
        known = self.names()
        root = f"{self.landing.resolve()}/"
        paths = (unquote(one.path).removeprefix("file:") for one in files)
        names = [f"/{path.lstrip('/')}".removeprefix(root) for path in paths]
        new = [name for name in names if not name.startswith(f"{FRONTIER_DIR}/") and name not in known]
        problems = damaged(self.landing, new, whole)
        if problems:
            write_durably(self.out / LEFT_OUT, json.dumps([*known, *problems]).encode())
            note_left_out(self.landing, problems)
            raise DamagedInputError(problems)


def damaged(landing: Path, names: Iterable[str], whole: bool = False) -> dict[str, str]:
    """The problem of each damaged file, by its path below the landing; by footers only, unless `whole`."""
    look: Callable[[Path], object] = check_file if whole else read_footer

    def problem(name: str) -> str | None:
        try:
            look(landing / name)
        except DamagedFileError as error:
            return str(error)
        return None

    listed = list(names)
    with ThreadPoolExecutor(READERS) as pool:
        return {name: text for name, text in zip(listed, pool.map(problem, listed), strict=True) if text is not None}


def damaged_in(landing: Path, whole: bool = False) -> dict[str, str]:
    """The problem of each damaged file in a whole landing that readers would see."""
    names = (file.relative_to(landing).as_posix() for file in data_files(landing))
    return damaged(landing, (name for name in names if name[0] != "_"), whole)


def note_left_out(landing: Path, names: Iterable[str]) -> None:
    """Tell `landing check` of files that a job has left out; without effect if the landing cannot be written."""
    for name in names:
        with suppress(OSError):
            (landing / LEFT_OUT_DIR / name).parent.mkdir(parents=True, exist_ok=True)
            (landing / LEFT_OUT_DIR / name).touch()
