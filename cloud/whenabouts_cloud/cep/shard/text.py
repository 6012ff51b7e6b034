"""A match, or a count of matches, as one line for people."""

from typing import Any

from whenabouts_cloud.display_time import date, headline, instant, shown


def match_text(match: dict[str, Any]) -> str:
    """When, what, which event at each place and how surely if it is not certain, from a row of `results.RESULT`.

    >>> event = {"name": "a", "stream": "shelf/1", "site": "s", "gateway": "g", "t_min": 0, "t_max": 0}
    >>> row = {"key": "E1", "status": "match", "t_min": 0, "probability": None}
    >>> match_text({**row, "events": [event, {**event, "name": "c", "t_min": 20, "t_max": 1500}]}).split("  ")[1:]
    ['E1', 'a shelf/1@s/g 00:00:00.000000', 'c shelf/1@s/g 00:00:00.000020..00:00:00.001500']
    >>> match_text({**row, "status": "retracted", "probability": 0.9, "events": [event]}).split("  ")[3:]
    ['p=0.9000', 'retracted']
    """
    day = date(match["t_min"])
    parts = [headline(match["t_min"]), shown(match["key"])]
    for event in match["events"]:
        span = instant(event["t_min"], day)
        if event["t_max"] != event["t_min"]:
            span += f"..{instant(event['t_max'], day)}"
        parts.append(f"{event['name']} {shown(event['stream'])}@{event['site']}/{event['gateway']} {span}")
    if match["probability"] is not None and match["probability"] < 1:
        parts.append(f"p={match['probability']:.4f}")
    if match["status"] != "match":
        parts.append(match["status"])
    return "  ".join(parts)


def count_text(count: dict[str, Any]) -> str:
    """When, of which key, how many matches and their aggregates, from a row of `results.COUNT`.

    >>> row = {"key": "E1", "t_min": 0, "matches": 3, "exact": True, "aggregates": [{"name": "SUM(a.value)", "value": 1.5}]}
    >>> count_text(row)
    '1970-01-01T00:00:00.000Z  E1  3 matches  SUM(a.value) 1.5'
    >>> count_text(row | {"t_min": None, "exact": False, "aggregates": [{"name": "MAX(a.x)", "value": None}]})
    'ever  E1  at least 3 matches  MAX(a.x) -'
    """
    least = "" if count["exact"] else "at least "
    parts = ["ever" if count["t_min"] is None else headline(count["t_min"]), shown(count["key"])]
    parts.append(f"{least}{count['matches']} matches")
    for one in count["aggregates"]:
        parts.append(f"{one['name']} {'-' if one['value'] is None else format(one['value'], '.12g')}")
    return "  ".join(parts)
