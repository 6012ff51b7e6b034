"""Which rule of a file a command runs, and the options of those commands (`whenabouts_cloud.commands.options`)."""

import click
import pytest
from click.testing import CliRunner

from whenabouts_cloud.cli import main
from whenabouts_cloud.commands import correlate
from whenabouts_cloud.jobs.output.output_place import Output
from whenabouts_cloud.jobs.work import Options, choose_rule
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules import CepRule, CorrelateRule

STREAMS = 'STREAM a FROM "a" DELAY 1 s\nSTREAM b FROM "b" DELAY 1 s\n'
PAIR = "RULE {} CORRELATE a AS x, b AS y WHERE |@x - @y| <= 1 s OVER 80 %\n"
ORDER = "RULE {} SEQ(a, b) WITHIN 1 s PER key\n"


@pytest.fixture
def file(tmp_path):
    """Writes a rule file of these rules."""

    def write(*rules):
        (tmp_path / "rules.wa").write_text(STREAMS + "".join(rules), encoding="utf-8")
        return tmp_path / "rules.wa"

    return write


def test_the_only_rule_of_a_kind_needs_no_name(file):
    """A file with one rule for each command serves both."""
    both = file(PAIR.format("near"), ORDER.format("then"))
    assert choose_rule(both, None, CorrelateRule).name == "near"
    assert choose_rule(both, None, CepRule).name == "then"


def test_of_several_the_name_decides_and_is_required(file):
    """Rules of another kind are not offered."""
    several = file(ORDER.format("then"), PAIR.format("near"), ORDER.format("later"))
    assert choose_rule(several, "later", CepRule).name == "later"
    with pytest.raises(click.UsageError, match="found the rules then, later, expected --rule-name"):
        choose_rule(several, None, CepRule)
    with pytest.raises(click.UsageError, match="found never, expected one of then, later"):
        choose_rule(several, "never", CepRule)


@pytest.mark.parametrize("name", ["near", None])
def test_a_rule_of_another_kind_is_refused_with_its_command(file, name):
    """By name, or because there is nothing else."""
    with pytest.raises(click.UsageError, match="rule near is for another command: whenabouts-cloud correlate"):
        choose_rule(file(PAIR.format("near")), name, CepRule)


@pytest.mark.parametrize("command", ["run", "correlate", "cep", "latwin"])
def test_every_job_can_log_as_json_and_write_metrics(command, tmp_path):
    """Forms that are none are refused before anything is done."""
    text = CliRunner().invoke(main, [command, "--help"]).output
    assert all(option in text for option in ("--log-format", "WHENABOUTS_LOG_FORMAT", "--metrics-file", "--quiet"))
    needed = ("--landing", "--rule", "--out")
    options = [x for name in needed for x in (name, str(tmp_path / "none"))]
    result = CliRunner().invoke(main, [command, *options, "--log-format", "xml"])
    assert (result.exit_code, "'text', 'json'" in result.output) == (2, True)


def test_a_healed_checkpoint_is_said_with_the_rule_and_what_to_do(file, tmp_path):
    """The counts of a shard that lowered a horizon become one warning; other counts become none."""
    rule = choose_rule(file(PAIR.format("near")), None, CorrelateRule)
    options = Options(Store.at(tmp_path), Output.at(tmp_path), False, False, 1, 1.0, "local", False, "text", None)
    notices = correlate.work_of(rule, options).notices
    assert notices({"rule": "near", "readings": 3}) == []
    [notice] = notices({"rule": "near", "healed": 1})
    assert (notice.event, notice.value) == ("state.healed", "near")
    assert "takes them again" in notice.text
    assert "--once" in notice.text
