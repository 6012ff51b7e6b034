"""Logs of all programs (`whenabouts_protocol.logs`): events with fields, as a line for people or as JSON."""

import json
import logging

import pytest

from whenabouts_protocol.logs import FORMATS, JsonFormat, Log, TextFormat, write_logs


@pytest.fixture(autouse=True)
def everything(caplog):
    """Logs from debug on are kept."""
    caplog.set_level(logging.DEBUG)


def test_an_event_is_a_line_with_its_fields_and_its_sentence(caplog):
    """Time, level, event, key=value, text."""
    Log("whenabouts.x").warning("reader.lost", "opens it again", reader="dock", wait_s=0.5)
    line = TextFormat().format(caplog.records[0])
    assert line.split(" ", 2)[2] == "WARNING reader.lost reader=dock wait_s=0.5: opens it again"


def test_an_event_as_json_has_time_level_logger_event_text_and_fields(caplog):
    """Numbers stay numbers; a field that is called as one of these gets a prefix."""
    Log("whenabouts.x").info("landing.flushed", "as asked", readings=3, time="now")
    said = json.loads(JsonFormat().format(caplog.records[0]))
    assert said.pop("time").endswith("+00:00")
    assert said == {
        "level": "info", "logger": "whenabouts.x", "event": "landing.flushed", "text": "as asked", "readings": 3,
        "field_time": "now",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["a b", 'x" level=ERROR', "a\n2026 ERROR forged", "", "a=b", "\x1b[31m", "é"])
def test_values_of_others_cannot_look_like_lines_or_fields(caplog, name):
    """They are quoted, and read back from there."""
    Log("whenabouts.x").error("gateway.lost", name, gateway=name)
    line = TextFormat().format(caplog.records[0])
    assert "\n" not in line
    assert "\x1b" not in line
    quoted = line.split("gateway=", 1)[1]
    assert json.JSONDecoder().raw_decode(quoted)[0] == name
    assert json.loads(JsonFormat().format(caplog.records[0]))["gateway"] == name


@pytest.mark.parametrize("form", [TextFormat, JsonFormat])
def test_a_traceback_is_kept(caplog, form):
    """Of the exception that is handled."""
    try:
        raise ValueError("x is wrong")
    except ValueError:
        Log("whenabouts.x").exception("reader.failed", reader="dock")
    assert "ValueError: x is wrong" in form().format(caplog.records[0])


def test_messages_of_libraries_are_shown_under_their_name(caplog):
    """As they have no event."""
    logging.getLogger("paho").warning("found %d", 3)
    assert TextFormat().format(caplog.records[0]).endswith("WARNING paho: found 3")
    assert json.loads(JsonFormat().format(caplog.records[0]))["text"] == "found 3"


@pytest.mark.parametrize("form", FORMATS)
def test_logs_go_to_stderr_from_a_level_on(form, capsys):
    """And replace what was set before."""
    before = logging.getLogger().handlers[:], logging.getLogger().level
    try:
        write_logs(form, "warning")
        Log("whenabouts.x").info("quiet")
        Log("whenabouts.x").warning("loud")
    finally:
        logging.getLogger().handlers[:], level = before
        logging.getLogger().setLevel(level)
    said = capsys.readouterr().err
    assert "loud" in said
    assert "quiet" not in said
