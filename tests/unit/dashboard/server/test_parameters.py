"""Query parameters from anyone: each wrong one is refused with what was found and what was expected."""

import pytest
from starlette.datastructures import QueryParams

from whenabouts_cloud.dashboard.answers.timeline_answer import Asked
from whenabouts_cloud.dashboard.server.parameters import (
    MAX_RULES,
    SAFE,
    ParameterError,
    one,
    times_of,
    view_of,
    whole,
)

HOSTILE = [
    ("", "from: found nothing"),
    ("from=1", "to: found nothing"),
    ("from=2&to=1", "to: found '1', expected a time after from, 2"),
    ("from=1&to=1", "to: found '1', expected a time after from, 1"),
    ("from=1&from=2&to=3", "from: found 2 values, expected one"),
    ("from=&to=2", "from: found '', expected a whole number"),
    ("from=nan&to=2", "from: found 'nan'"),
    ("from=1e3&to=2000", "from: found '1e3'"),
    ("from=1.0&to=2", "from: found '1.0'"),
    ("from=+1&to=2", "from: found ' 1'"),
    ("from=1_0&to=20", "from: found '1_0'"),
    ("from=0x1&to=20", "from: found '0x1'"),
    ("from=%D9%A1&to=2", "from: found '\\u0661'"),
    ("from=%EF%BC%91&to=2", "from: found '\\uff11'"),
    ("from=1%0A&to=2", "from: found '1\\n'"),
    ("from=1%00&to=2", "from: found '1\\x00'"),
    (f"from=-{SAFE + 1}&to=2", f"from: found '-{SAFE + 1}'"),
    (f"from=1&to={SAFE + 1}", f"to: found '{SAFE + 1}'"),
    ("from=1&to=" + "9" * 30, "to: found '" + "9" * 30),
    ("from=1&to=" + "9" * 5000, "to: found 5000 characters, expected at most 256"),
    ("from=1&to=2&px=0", "px: found '0', expected a whole number from 1 to 4000"),
    ("from=1&to=2&px=4001", "px: found '4001'"),
    ("from=1&to=2&px=-0x1", "px: found '-0x1'"),
    ("from=1&to=2&by=other", "by: found 'other', expected reader or tag"),
    ("from=1&to=2&by=reader&by=tag", "by: found 2 values"),
    ("from=1&to=2&offset=-1", "offset: found '-1'"),
    ("from=1&to=2&limit=501", "limit: found '501'"),
    ("from=1&to=2&limit=", "limit: found ''"),
    ("from=1&to=2&search=" + "x" * 257, "search: found 257 characters"),
    ("from=1&to=2&rules=" + ",".join(f"r{n}" for n in range(MAX_RULES + 1)), "rules: found 51 names"),
]


@pytest.mark.parametrize(("query", "text"), HOSTILE)
def test_a_wrong_parameter_is_refused_with_its_name(query, text):
    """The text is short and plain, whatever was sent."""
    with pytest.raises(ParameterError) as error:
        view_of(QueryParams(query))
    said = str(error.value)
    assert said.startswith(text)
    assert "expected" in said
    assert said.isascii()
    assert said.isprintable()
    assert len(said) < 250


def test_a_view_has_defaults():
    """Only its time is required."""
    assert view_of(QueryParams("from=-5&to=5")) == Asked(-5, 5, 1000)


def test_a_view_takes_all_parameters():
    """Names of rules are told apart by commas; empty and repeated ones count for nothing."""
    query = "from=1&to=2&px=3&by=tag&search=%C3%A4&offset=4&limit=5&rules=a,,b,a"
    assert view_of(QueryParams(query)) == Asked(1, 2, 3, "tag", "ä", 4, 5, ("a", "b"))


def test_the_ends_of_the_range_are_in_it():
    """A browser's numbers are exact there."""
    assert times_of(QueryParams(f"from={-SAFE}&to={SAFE}")) == (-SAFE, SAFE)
    assert whole(QueryParams("n=007"), "n", 0, 7) == 7


def test_a_text_that_utf_8_cannot_hold_is_refused():
    """Half of a surrogate pair; anything else is only text."""
    with pytest.raises(ParameterError, match="expected text in UTF-8"):
        one(QueryParams([("key", "\ud800")]), "key")
    assert one(QueryParams("key=%3Cscript%3E"), "key") == "<script>"
