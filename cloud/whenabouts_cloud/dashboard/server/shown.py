"""The answers of the GET routes, from a board and the parameters of a request. Called in threads."""

import time
from collections.abc import Callable
from typing import Any

from starlette.datastructures import QueryParams

from whenabouts_cloud.dashboard.board import Board
from whenabouts_cloud.dashboard.server.about import About
from whenabouts_cloud.dashboard.server.parameters import (
    one,
)

Answer = Callable[[Board, About, QueryParams], Any]


def overview(board: Board, about: About, query: QueryParams) -> Any:
    """What this dashboard shows, and how far it has read it."""
    return {
        "landing": about.landing,
        "results": about.results,
        "rule_file": None if about.rule_file is None else str(about.rule_file),
        "now_us": time.time_ns() // 1000,
        "first_us": None, "last_us": None, "latest_landed_us": None, "readings": 0, "lanes": 0, "files": 0, "bytes": 0,
        "counted": 0.0, "exact": False, "problems": board.problems(),
        "rules": [{"name": rule["name"], "kind": rule["kind"]} for rule in board.rules.value()["rules"]],
        "may_publish": about.may_publish,
        "broker": about.broker, "has_truth": False, "version": board.version(),
    }  # fmt: skip


def rules(board: Board, about: About, query: QueryParams) -> Any:
    """The rule file with the figures of each rule."""
    return board.rules.value()


def keys(board: Board, about: About, query: QueryParams) -> Any:
    """Recent keys that begin with some letters."""
    return {"keys": board.keys(one(query, "prefix", ""), 20)}


VIEWS: dict[str, Answer] = {"overview": overview, "rules": rules, "keys": keys}
