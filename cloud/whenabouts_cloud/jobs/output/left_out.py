"""Files of a landing that a query leaves out because they are damaged.

    OUT/_left_out.json                  their paths below the landing; written before the micro-batch that lacks them
    PART/_damaged/left_out/             in its part of the landing an empty file for each, if it can be written, which
                                        `landing check` reads

The end of each new file is read before a micro-batch, some 0.3 ms a file, and all of it if a task could not read it. The
query then ends and is started again without the damaged files. The list keeps a micro-batch that is repeated as it was. Jobs
never read a number twice: a file that is repaired, or put back, gets a new one by `landing check --repair`.

A file that is gone is not damaged: it was merged or deleted after it had been listed. The query that is started again lists
what is there.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from whenabouts_cloud.landing.files import LEFT_OUT_DIR, DamagedFileError, check_file, read_footer
from whenabouts_cloud.landing.history import Piece, everything, readings_of
from whenabouts_cloud.landing.layout import FRONTIER, PART
from whenabouts_cloud.landing.scan import frontiers_in
from whenabouts_cloud.landing.sealing import sealed, unsealed
from whenabouts_cloud.landing.store import Store

LEFT_OUT = "_left_out.json"
READERS = 4  # files that are read at a time
UNREADABLE = "DamagedFileError"  # in what Spark reports of a task that has met one


class DamagedInputError(Exception):
    """A query must start again without these files: their problems by path below the landing; none, if only what it has
    listed is not there any more.
    """

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {problem}" for name, problem in problems.items()))
        self.problems = dict(problems)


@dataclass(frozen=True)
class LeftOut:
    """The damaged files of a query over `landing` that publishes to `out`."""

    landing: Store
    out: Store

    def names(self) -> list[str]:
        """Paths of the files below the landing. Those of a list that is damaged itself are found anew when they are read."""
        try:
            return [str(name) for name in unsealed(self.out.read(LEFT_OUT))["files"]]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return []

    def check(self, new: Iterable[Piece], whole: bool = False) -> None:
        """Check the new files of a micro-batch: the footers of those with readings, or all files whole.

        Raises:
            DamagedInputError: some are damaged, they are on the list now; or some are gone.
        """
        known = self.names()
        unreadable = _unreadable(self.landing, [one for one in new if one.path not in known], whole)
        problems = _still_there(self.landing, unreadable)
        if problems:
            self.out.write(LEFT_OUT, sealed({"files": [*known, *problems]}))
            note_left_out(self.landing, problems)
        if unreadable:
            raise DamagedInputError(problems)

    def look_again(self, new: Iterable[Piece], failure: str) -> None:
        """Find out why a task failed that had to read these files; without effect if it could read them. failure: what Spark
        tells.

        Raises:
            DamagedInputError: some are damaged; or it has read others, which were listed before they were merged.
        """
        if UNREADABLE not in failure:
            return
        files = list(new)
        self.check(files, whole=True)
        if not any(one.path in failure for one in files):
            raise DamagedInputError({})


def _unreadable(landing: Store, pieces: Iterable[Piece], whole: bool = False) -> dict[str, str]:
    """The problem of each file that is damaged or gone, by its path below the landing; by footers of readings only, unless
    `whole`.
    """
    look: Callable[[Store, str], object] = check_file if whole else read_footer

    def problem(one: Piece) -> str | None:
        try:
            if one.kind == FRONTIER:
                list(frontiers_in(landing, [one]))
            else:
                look(landing, one.path)
        except DamagedFileError as error:
            return str(error)
        return None

    listed = list(pieces)
    looked = listed if whole else readings_of(listed)
    with ThreadPoolExecutor(READERS) as pool:
        found = zip(looked, pool.map(problem, looked), strict=True)
        return {one.path: text for one, text in found if text is not None}


def _still_there(landing: Store, problems: Mapping[str, str]) -> dict[str, str]:
    """The problems without those of files that are in their folders no more."""
    folders = {name.rpartition("/")[0] for name in problems}
    there = {f"{folder}/{one.name}".lstrip("/") for folder in folders for one in landing.entries(folder)}
    return {name: problem for name, problem in problems.items() if name in there}


def damaged_in(landing: Store, whole: bool = False) -> dict[str, str]:
    """The problem of each damaged file in a whole landing that readers would see."""
    return _still_there(landing, _unreadable(landing, everything(landing), whole))


def note_left_out(landing: Store, names: Iterable[str]) -> None:
    """Tell `landing check` of files that a job has left out; without effect if the landing cannot be written."""
    for name in names:
        part, _, inner = name.partition("/")
        with suppress(OSError):
            landing.write(f"{part}/{LEFT_OUT_DIR}/{inner}" if part.startswith(PART) else f"{LEFT_OUT_DIR}/{name}", b"")
