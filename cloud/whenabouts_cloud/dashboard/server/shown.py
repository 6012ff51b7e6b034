"""The answers of the GET routes, from a board and the parameters of a request. Called in threads."""

import time
from collections.abc import Callable
from typing import Any

from starlette.datastructures import QueryParams

from whenabouts_cloud.dashboard.answers.gateways_answer import gateway as gateway_answer
from whenabouts_cloud.dashboard.answers.gateways_answer import gateways as gateways_answer
from whenabouts_cloud.dashboard.answers.health_answer import health as health_answer
from whenabouts_cloud.dashboard.answers.reading_answer import reading as reading_answer
from whenabouts_cloud.dashboard.answers.rules_answer import rules as rules_answer
from whenabouts_cloud.dashboard.answers.timeline_answer import timeline as timeline_answer
from whenabouts_cloud.dashboard.board import Board
from whenabouts_cloud.dashboard.server.about import About
from whenabouts_cloud.dashboard.server.parameters import INT64, one, times_of, view_of, whole
from whenabouts_cloud.landing.store import Store

Answer = Callable[[Board, About, QueryParams], Any]


def overview(board: Board, about: About, query: QueryParams) -> Any:
    """What this dashboard shows, and how far it has read it."""
    seen = board.landed.summary()
    told = [] if board.results is None else board.results.problems()
    return {
        "landing": about.landing, "results": about.results,
        "rule_file": None if about.rule_file is None else str(about.rule_file), "now_us": now_us(),
        "first_us": seen.first_us, "last_us": seen.last_us, "latest_landed_us": seen.latest_landed_us,
        "readings": seen.readings, "lanes": seen.lanes, "files": seen.files, "bytes": seen.bytes,
        "counted": seen.counted, "exact": seen.exact, "problems": [*board.problems(), *seen.problems, *told],
        "rules": [{"name": rule["name"], "kind": rule["kind"]} for rule in _rules(board)["rules"]],
        "may_publish": about.may_publish, "broker": about.broker, "has_truth": seen.has_truth, "version": board.version(),
    }  # fmt: skip


def timeline(board: Board, about: About, query: QueryParams) -> Any:
    """Lanes, counts or single readings, and arcs."""
    return timeline_answer(board.landed, board.results, view_of(query))


def reading(board: Board, about: About, query: QueryParams) -> Any:
    """One reading in detail."""
    site, gateway = one(query, "site"), one(query, "gateway")
    boot, seq, t_min, t_max = (whole(query, name, -INT64, INT64 - 1) for name in ("boot", "seq", "t_min", "t_max"))
    return reading_answer(board.landed, board.results, board.health, (site, gateway, boot, seq, t_min, t_max))


def gateways(board: Board, about: About, query: QueryParams) -> Any:
    """All gateways, those in trouble first."""
    return gateways_answer(board.health, board.landed, now_us())


def gateway(board: Board, about: About, query: QueryParams) -> Any:
    """The history of a gateway."""
    from_us, to_us = times_of(query)
    return gateway_answer(board.health, one(query, "site"), one(query, "gateway"), from_us, to_us)


def rules(board: Board, about: About, query: QueryParams) -> Any:
    """The rule file with the figures of each rule."""
    return _rules(board)


def health(board: Board, about: About, query: QueryParams) -> Any:
    """Ingests, dead letters, the landing, queries."""
    return health_answer(Store.at(about.landing), board.health, board.landed, board.results, now_us())


def keys(board: Board, about: About, query: QueryParams) -> Any:
    """Recent keys that begin with some letters."""
    return {"keys": board.keys(one(query, "prefix", ""), 20)}


def now_us() -> int:
    """The present."""
    return time.time_ns() // 1000


def _rules(board: Board) -> dict[str, Any]:
    return rules_answer(board.rules.value(), {} if board.results is None else board.results.figures())


VIEWS: dict[str, Answer] = {
    "overview": overview, "timeline": timeline, "reading": reading, "gateways": gateways, "gateway": gateway,
    "rules": rules, "health": health, "keys": keys,
}  # fmt: skip
