"""A pair as one line for people."""

from typing import Any

from whenabouts_cloud.display_time import date, headline, instant, shown


def pair_text(pair: dict[str, Any]) -> str:
    """When, what, who and how surely, from a row of `pairs.RESULT`; a reading of a that is in no pair says so.

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
