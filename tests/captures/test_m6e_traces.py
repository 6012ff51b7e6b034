"""Dialogues with a real M6e Nano, as ThingMagic's library logged them: read, written, played again."""

import pytest

from support.files.captures import folder, m6e_nano
from support.files.trace_checks import check_dialogue, check_transport, check_written_again

every_capture = pytest.mark.parametrize("path", m6e_nano(), ids=lambda path: path.stem)


@every_capture
def test_a_capture_of_a_real_reader_parses_whole(path):
    """As many records as head lines, in their directions and times, and every frame has the length it states."""
    check_transport(path)


@every_capture
def test_a_capture_of_a_real_reader_is_the_same_when_we_write_it(path, tmp_path):
    """Every frame, at its time."""
    check_written_again(path, tmp_path / "again.transport")


@pytest.mark.parametrize("speed", ["max", "50"])
def test_a_program_that_sends_the_recorded_commands_gets_the_recorded_answers(speed):
    """Every command of the capture has exactly one answer, which comes no earlier than in the capture."""
    check_dialogue(folder("m6e-nano-serial", "read.transport"), speed)
