"""The tutorial and the lessons on own data: every command prints what is shown below it."""

import pytest

from support import documents
from support.cloud import lessons
from whenabouts_sim.stack.broker import free_port


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("names", "lines"), [(("orfid", "passage"), 18), (("feeder",), 11)])
def test_the_commands_of_a_lesson_print_what_it_shows(spark, tmp_path, names, lines):
    """Every line in order, in one shell; the second lesson on fish goes on where the first ends."""
    assert lessons.repeat(tmp_path, "".join(map(lessons.text, names))) == lines
    assert spark.sparkContext.getConf().get("spark.master") == "local[2]"  # no command has ended it


@pytest.mark.timeout(900)
def test_the_tutorial_goes_from_nothing_to_an_emitted_match(spark, tmp_path):
    """Two agents, a broker and an ingest run for real; one rule emits three matches."""
    assert lessons.repeat(tmp_path, documents.page("docs/tutorial.md"), PORT=free_port()) >= 15
