"""A verdict as one line for people."""

from typing import Any

from whenabouts_cloud.display_time import date, headline, instant, shown


def verdict_text(row: dict[str, Any]) -> str:
    """Since when, what is said of which group, and by which states, from a row of `results.RESULT`.

    >>> state = {"name": "phone", "site": "s", "gateway": "g", "state": 3, "t_min": 0, "t_max": 1500}
    >>> row = {"group": "office", "verdict": "definitely", "status": "told", "t_min": 0, "states": [state]}
    >>> verdict_text(row).split("  ")[1:]
    ['office', 'definitely', 'phone 3@s/g 00:00:00.000000..00:00:00.001500']
    >>> verdict_text({**row, "status": "withdrawn"}).split("  ")[4:]
    ['withdrawn']
    """
    day = date(row["t_min"])
    parts = [headline(row["t_min"]), shown(row["group"]), row["verdict"]]
    for one in row["states"]:
        span = instant(one["t_min"], day)
        if one["t_max"] != one["t_min"]:
            span += f"..{instant(one['t_max'], day)}"
        parts.append(f"{one['name']} {one['state']}@{one['site']}/{one['gateway']} {span}")
    if row["status"] != "told":
        parts.append(row["status"])
    return "  ".join(parts)
