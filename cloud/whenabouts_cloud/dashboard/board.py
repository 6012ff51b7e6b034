"""The indices that the dashboard answers from, and the thread that keeps them up to date.

`follow` of each index does a slice of work and says whether there is more. While any of them has more, the thread goes on at
once; otherwise it waits IDLE_S, so that an idle dashboard costs a few listings a second. A follower that raises is named in
`problems`, and asked again: a folder that cannot be read now may be readable soon.
"""

import threading
from dataclasses import dataclass
from typing import Any, Protocol

from whenabouts_cloud.dashboard.questions.rule_book import MAX_STREAMS, RuleBook, Streams
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
    """What the dashboard answers from; a context manager that runs the thread.

    landed, results, health: indices, None for one that is not there; rules: the rule file.
    """

    def __init__(
        self, landed: Any = None, results: Any = None, health: Any = None, rules: RuleBook | None = None
    ) -> None:
        self.landed, self.results, self.health = landed, results, health
        self.rules = RuleBook(None) if rules is None else rules
        indices = {"landing": landed, "results": results, "health": health, "rules": self.rules}
        self._followed = {name: _Followed(index) for name, index in indices.items() if index is not None}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dashboard follower", daemon=True)

    def __enter__(self) -> "Board":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.rules.close()
        self._thread.join(END_S)

    def version(self) -> dict[str, int]:
        """The version of each index."""
        return {name: followed.index.version for name, followed in self._followed.items()}

    def problems(self) -> list[str]:
        """What keeps an index from following now."""
        return [followed.problem for followed in self._followed.values() if followed.problem]

    def streams(self) -> Streams:
        """The streams that have landed, at most MAX_STREAMS."""
        return () if self.landed is None else streams_of(self.landed)

    def keys(self, prefix: str, limit: int) -> list[str]:
        """Recent keys that begin with this."""
        return [] if self.landed is None else list(self.landed.keys(prefix, limit))

    @property
    def alive(self) -> bool:
        """True while the thread runs."""
        return self._thread.is_alive()

    def step(self) -> bool:
        """One slice of each index; True if any has more to do at once."""
        more = [self._follow(name, followed) for name, followed in self._followed.items()]
        return any(more)

    def _run(self) -> None:
        while not self._ended.is_set():
            if not self.step():
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


def streams_of(landed: Any) -> Streams:
    """The streams of an index of landed readings, at most MAX_STREAMS."""
    lanes, _ = landed.lanes("", 0, MAX_STREAMS)
    return [(lane.stream, lane.gateway, lane.site) for lane in lanes]
