"""Why a rule has no result for a key around a time, as `why-not` tells it."""

from collections.abc import Mapping
from typing import Any

from whenabouts_cloud.dashboard.questions.plain_values import plain
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules import parse_rules
from whenabouts_cloud.why_not.answer import why_not


def answer(values: Mapping[str, Any]) -> dict[str, Any]:
    """Of a landing (URI), the text of a rule file, the name of a rule, a key and a time: {verdict, lines, answer}.

    Raises:
        ValueError: the text has mistakes, or there are too many readings.
        LookupError: there is no such rule.
        OSError: the landing cannot be read.
    """
    rule = parse_rules(values["text"]).one(values["rule"])
    found = why_not(Store.at(values["landing"]), rule, values["key"], values["at_us"])
    said = found.json()
    return {"verdict": said["verdict"], "lines": found.lines(), "answer": plain(said)}
