"""Identities: what may become a certificate's name, and so a user and a place among the topics."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whenabouts_cloud.enrol.names import (
    BROKER,
    INGEST,
    MAX_IDENTITY_BYTES,
    PUBLISHER,
    EnrolError,
    identity_of,
    ingest_identity,
    shown,
)
from whenabouts_protocol import parse_topic

HOSTILE = [
    "",
    "+",
    "#",
    "a/b",
    "/",
    "..",
    ".",
    "$SYS",
    "a+",
    "a#b",
    "a\nuser ingest",
    "a\0b",
    "\ud800",
    "a b",
    "\x85",
    "x" * 65,
]


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_topic_level_is_refused(name):
    """As a site and as a gateway, with a text that holds no control character."""
    for pair in ((name, "dock"), ("site", name)):
        with pytest.raises(EnrolError, match="found ") as caught:
            identity_of(*pair)
        assert str(caught.value).isprintable()


def test_names_that_are_too_long_together_are_refused():
    """A certificate's name has at most 64 bytes, which two long names exceed."""
    assert identity_of("s" * 31, "g" * 32) == "s" * 31 + "/" + "g" * 32
    for pair in (("s" * 32, "g" * 32), ("日" * 11, "日" * 11)):
        with pytest.raises(EnrolError, match=f"expected at most {MAX_IDENTITY_BYTES}"):
            identity_of(*pair)


@given(st.text(max_size=9), st.text(max_size=9))
def test_an_identity_is_a_place_among_topics_and_never_one_of_the_cloud(site, name):
    """Whatever is accepted names exactly its own topics."""
    try:
        identity = identity_of(site, name)
    except EnrolError:
        return
    assert parse_topic(f"wa/2/{identity}/obs") == (site, name, "obs")
    assert identity not in (INGEST, PUBLISHER, BROKER)


def test_a_terminal_sees_no_tricks():
    """A sign that turns the direction of writing is escaped, letters stay."""
    assert shown("s/日本") == "s/日本"
    assert shown("s/\u202edock") == "s/\\u202edock"


@pytest.mark.parametrize("name", ["", "a/b", "a b", ".a", "$a", "a=b", "a" * 58, "日"])
def test_a_name_of_an_ingest_is_one_of_a_folder(name):
    """And fits into a certificate together with its prefix."""
    assert len(ingest_identity("a" * 57)) == MAX_IDENTITY_BYTES
    with pytest.raises(EnrolError, match=r"--name: found .* expected 1 to 57 letters"):
        ingest_identity(name)
