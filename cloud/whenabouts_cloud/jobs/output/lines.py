"""Formats a result as one line for people: a pair, a match, a count of matches, a verdict."""

from typing import Any

from whenabouts_cloud.display_time import date, headline, instant, shown


def pair_text(pair: dict[str, Any]) -> str:
    """Time, key, both readings and probability, from a row of `correlation.pairs.RESULT`; or one reading, "unmatched".

    >>> a = {"a_stream": "dock", "a_site": "s", "a_gateway": "g", "a_t_min": 0, "a_t_max": 1500}
    >>> b = {"b_stream": "shelf", "b_site": "s", "b_gateway": "h", "b_t_min": 0, "b_t_max": 20}
    >>> pair_text({**a, **b, "key": None, "probability": 0.9}).split("  ")[2:]
    ['dock@s/g 00:00:00.000000..00:00:00.001500', 'shelf@s/h 00:00:00.000000..00:00:00.000020', 'p=0.9000']
    """
    both = "a" if pair["b_site"] is None else "ab"
    first = min(pair[f"{x}_t_min"] for x in both)
    day = date(first)
    sides = "  ".join(
        f"{shown(pair[f'{x}_stream'])}@{pair[f'{x}_site']}/{pair[f'{x}_gateway']} "
        f"{instant(pair[f'{x}_t_min'], day)}..{instant(pair[f'{x}_t_max'], day)}"
        for x in both
    )
    surely = "unmatched" if both == "a" else f"p={pair['probability']:.4f}"
    return f"{headline(first)}  {shown(pair['key'])}  {sides}  {surely}"


def match_text(match: dict[str, Any]) -> str:
    """Time, key, the event at each place, and the probability if below 1, from a row of `cep.shard.results.RESULT`.

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
    """Time, key, number of matches and aggregates, from a row of `cep.shard.results.COUNT`.

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


def verdict_text(row: dict[str, Any]) -> str:
    """Begin, group, verdict and states, from a row of `latwin.shard.results.RESULT`.

    >>> state = {"name": "phone", "site": "s", "gateway": "g", "state": 3, "t_min": 0, "t_max": 1500}
    >>> row = {"group": "office", "verdict": "definitely", "status": "emitted", "t_min": 0, "states": [state]}
    >>> verdict_text(row).split("  ")[1:]
    ['office', 'definitely', 'phone 3@s/g 00:00:00.000000..00:00:00.001500']
    >>> verdict_text({**row, "status": "retracted"}).split("  ")[4:]
    ['retracted']
    """
    day = date(row["t_min"])
    parts = [headline(row["t_min"]), shown(row["group"]), row["verdict"]]
    for one in row["states"]:
        span = instant(one["t_min"], day)
        if one["t_max"] != one["t_min"]:
            span += f"..{instant(one['t_max'], day)}"
        parts.append(f"{one['name']} {one['state']}@{one['site']}/{one['gateway']} {span}")
    if row["status"] != "emitted":
        parts.append(row["status"])
    return "  ".join(parts)
