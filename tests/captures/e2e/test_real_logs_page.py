"""The page on real logs: its commands print what it shows."""

import pytest

from support.cloud import lessons
from support.files.captures import folder

PAGE = lessons.text("real-logs")


@pytest.mark.deep
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("head", "places", "count"),
    [
        ("Fish at two antennas", {"ORFID": folder("orfid-multireader")}, 14),
        ("Birds at four feeders", {"FEEDR": folder("feeder-rfid", "raw")}, 7),
    ],
)
def test_the_commands_of_the_page_print_what_it_shows(tmp_path, head, places, count):
    """Every line of a section, in order, after those at the top of the page; Spark runs once."""
    top = PAGE.partition("\n## ")[0]
    assert lessons.repeat(tmp_path, top + lessons.section(PAGE, head), **places) == count
