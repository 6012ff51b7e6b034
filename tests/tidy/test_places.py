"""Tracked files name no place that exists on one machine only: no home, no scratch folder, no private package index."""

import re

import pytest

from support.paths import REPOSITORY
from support.sources import tracked_files

PLACES = {
    "a machine's path": re.compile(r"(?<![\w.])/(?:work|root|home/(?!pi/)\w+|Users/\w+|opt/pypi\S*|tmp/w)/"),
    "a package index": re.compile(r"(?:index-url|extra-index|find-links)\s*[=:]\s*\S|https?://[^\s/]*pypi", re.I),
}
SELF = "tests/tidy/test_places.py"


def found_in(text):
    """Kinds of places that a text names."""
    return {kind for kind, pattern in PLACES.items() if pattern.search(text)}


def test_no_tracked_file_names_a_place_of_one_machine():
    """Every text file under version control but this one."""
    places = {}
    for path in tracked_files():
        name = str(path.relative_to(REPOSITORY))
        if name != SELF and (kinds := found_in(path.read_text(encoding="utf-8", errors="replace"))):
            places[name] = kinds
    assert places == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open('/work/shared/x')", {"a machine's path"}),
        ("/root/.pyenv/versions", {"a machine's path"}),
        ("see /home/someone/x", {"a machine's path"}),
        ("--index-url=https://host/simple", {"a package index"}),
        ("https://pypi.example.org/simple/", {"a package index"}),
        ("boards/work/x and ../shared/data, /etc/udev/rules.d, /dev/ttyUSB0, /home/pi/dock.trace", set()),
    ],
)
def test_the_check_of_places_sees_what_it_is_for(text, expected):
    """It finds homes and indexes; devices, relative paths and the example home of a Raspberry Pi are fine."""
    assert found_in(text) == expected
