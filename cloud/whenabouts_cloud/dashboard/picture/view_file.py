"""A timeline as a file, by its kind: svg, png, csv, parquet.

In a notebook: `view_file(timeline(landed, results, Asked(from_us, to_us, px)), "svg")`, see `answers.timeline_answer`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from whenabouts_cloud.dashboard.picture.as_png import as_png
from whenabouts_cloud.dashboard.picture.as_svg import as_svg
from whenabouts_cloud.dashboard.picture.table_files import as_csv, as_parquet, view_table
from whenabouts_cloud.dashboard.picture.timeline_picture import timeline_picture

MEDIA_TYPES = {
    "svg": "image/svg+xml", "png": "image/png", "csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"
}  # fmt: skip


def view_file(answer: Mapping[str, Any], kind: str, width: int = 1200, height: int = 0, theme: str = "light") -> bytes:
    """The content of a file of this kind; width, height (0: as the lanes need) and theme are those of a picture."""
    drawn: dict[str, Callable[[Any], bytes]] = {"svg": as_svg, "png": as_png}
    if kind in drawn:
        return drawn[kind](timeline_picture(answer, width, height, theme))
    return (as_csv if kind == "csv" else as_parquet)(view_table(answer))
