"""Topic names: a gateway cannot choose a name that leaves its own topics."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whenabouts_protocol.topics import LEAVES, is_name, parse_topic, subscription, topic

HOSTILE = [
    "", "/", "a/b", "../x", "..", ".", ".hidden", "+", "#", "a+", "a#", "$SYS", "$share", "a b", " ", "a\tb", "a\n",
    "\0", "a\0b", "\x7f", "a\x80", "a\x9f", "a\ufdd0", "a\ufffe", "a\uffff", "a\U0001fffe", "\ud800", "x" * 65,
    "ä" * 33, None, 5, b"dock", ["dock"],
]  # fmt: skip
FINE = [
    "dock-1",
    "x",
    "x" * 64,
    "ä" * 32,
    "Köln",
    "ворота",
    "気温",
    "😀",
    "a.b",
    "a$",
    "-",
    "_",
    "%2F",
    "\xa0",
    "'",
    '"',
    "\\",
]


@pytest.mark.parametrize("name", HOSTILE, ids=repr)
def test_hostile_names_are_no_topic_level(name):
    """Wildcards, separators, control and non-characters, dots and dollars in front, too much, and what is no text."""
    assert not is_name(name)
    for site, gateway, who in ((name, "g", "site"), ("s", name, "gateway")):
        with pytest.raises(ValueError, match=rf"^{who}: found "):
            topic(site, gateway, "obs")
        if isinstance(name, str):
            assert parse_topic(f"wa/2/{site}/{gateway}/obs") is None
    if name != "+":
        with pytest.raises(ValueError, match=r"^site: found "):
            subscription("obs", site=name)


@pytest.mark.parametrize("name", FINE)
@pytest.mark.parametrize("leaf", [*LEAVES, "cmd/flush"])
def test_a_topic_comes_back_in_its_parts(name, leaf):
    """Composing and parsing are each other's reverse for every leaf."""
    assert parse_topic(topic(name, name, leaf)) == (name, name, leaf)


@given(st.text(max_size=12), st.text(max_size=12), st.text(max_size=8))
def test_any_names_compose_to_what_they_parse_to_or_not_at_all(site, gateway, leaf):
    """No two of (site, gateway, leaf) share a topic."""
    try:
        name = topic(site, gateway, leaf)
    except ValueError:
        return
    assert parse_topic(name) == (site, gateway, leaf)


@pytest.mark.parametrize(
    "leaf", ["", "Obs", "obs/", "obs/x", "cmd/", "cmd/+", "cmd/#", "cmd/a/b", "nothing", "cmd/a b"]
)
def test_leaves_that_do_not_exist_are_refused(leaf):
    """Only `cmd` has a level below it, and that is one name."""
    with pytest.raises(ValueError, match=r"^topic leaf: found .* expected one of obs, state, birth"):
        topic("s", "g", leaf)
    assert parse_topic("wa/2/s/g/" + leaf) is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        "wa",
        "wa/2/s/g",
        "wa/1/s/g/obs",
        "wa/01/s/g/obs",
        "WA/1/s/g/obs",
        "/wa/2/s/g/obs",
        "x/1/s/g/obs",
        "wa/2//g/obs",
    ],
)
def test_other_topics_are_not_ours(name):
    """Another prefix, version or number of levels parses to None."""
    assert parse_topic(name) is None


def test_subscriptions_cover_all_or_one():
    """A plus fills each level without a value."""
    assert subscription("obs") == "wa/2/+/+/obs"
    assert subscription("cmd/+", "s", "g") == "wa/2/s/g/cmd/+"
    with pytest.raises(ValueError, match=r"^gateway: found 'a/#'"):
        subscription("obs", gateway="a/#")
