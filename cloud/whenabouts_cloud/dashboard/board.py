"""The indices that the dashboard answers from, and the thread that keeps them up to date.

`follow` of each index does a slice of work and says whether there is more. While any of them has more, the thread goes on at
once; otherwise it waits IDLE_S, so that an idle dashboard costs a few listings a second. A follower that raises is named in
`problems`, and asked again: a folder that cannot be read now may be readable soon.
"""

import threading
from dataclasses import dataclass
from typing import Any, Protocol

from whenabouts_protocol.logs import Log

log = Log(__name__)

SLICE_S = 0.2  # of work at once for one index: the others wait so long
IDLE_S = 0.5
END_S = 2.0  # that the end waits for the thread; it is a daemon, and holds nothing open


class Index(Protocol):
    """An index that follows a source."""

    @property
    def version(self) -> int:
        """Grows when an answer may have changed."""
        ...

    def follow(self, budget_s: float) -> bool:
        """Do some work; return True if there is more to do at once."""
        ...


@dataclass(slots=True)
class _Followed:
    index: Index
    problem: str = ""  # of the last call; "" if it worked


class Board:
    """The indices by name, such as "landing"; a context manager that runs the thread."""

    def __init__(self, indices: dict[str, Any]) -> None:
        self.indices = indices
        self._followed = {name: _Followed(index) for name, index in indices.items()}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dashboard follower", daemon=True)

    def __enter__(self) -> "Board":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(END_S)

    def version(self) -> dict[str, int]:
        """The version of each index."""
        return {name: followed.index.version for name, followed in self._followed.items()}

    def problems(self) -> list[str]:
        """What keeps an index from following now."""
        return [followed.problem for followed in self._followed.values() if followed.problem]

    def _run(self) -> None:
        while not self._ended.is_set():
            more = [self._follow(name, followed) for name, followed in self._followed.items()]
            if not any(more):
                self._ended.wait(IDLE_S)

    def _follow(self, name: str, followed: _Followed) -> bool:
        """One slice; after an error there is nothing more to do at once."""
        if self._ended.is_set():
            return False
        try:
            more = followed.index.follow(SLICE_S)
        except Exception as error:  # whatever is in the folders, the other indices go on
            text = f"{name}: cannot be read ({' '.join(str(error).split())[:300] or type(error).__name__})"
            if text != followed.problem:
                log.exception("dashboard.follow", text, index=name)
            followed.problem = text
            return False
        followed.problem = ""
        return more
