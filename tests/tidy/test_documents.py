"""What the documents say about commands, targets and files is true."""

import re
from pathlib import Path

import click
import pytest

from support.paths import REPOSITORY
from whenabouts_cloud.cli import main as cloud
from whenabouts_cloud.rules import load_rules
from whenabouts_edge.cli import main as edge
from whenabouts_edge.config.load import parse
from whenabouts_sim.cli import main as sim
from whenabouts_sim.demo.rules import RULE
from whenabouts_sim.world.world import DOCK, DOOR

README = (REPOSITORY / "README.md").read_text()
COMMANDS = {"whenabouts-edge": edge, "whenabouts-cloud": cloud, "whenabouts-sim": sim}


def _shell_lines(text: str) -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", text, re.S)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def _project_commands() -> list[tuple[str, str]]:
    found = []
    for line in _shell_lines(README):
        for name in COMMANDS:
            at = re.search(rf"(?:^|[ /]){name} (\S+)(.*)", line)
            if at:
                found.append((name, at[1] + at[2].split("#")[0].split(">")[0]))
    return found


def test_the_readme_has_commands_of_ours():
    """The checks below look at something."""
    assert len(_project_commands()) >= 7


@pytest.mark.parametrize(("name", "text"), _project_commands())
def test_commands_in_the_readme_exist_with_their_options(name, text):
    """Every command and option that the README shows is one the program knows."""
    verb, *words = text.split()
    command = COMMANDS[name].commands[verb]
    known = {option for parameter in command.params for option in parameter.opts if isinstance(parameter, click.Option)}
    assert {word for word in words if word.startswith("--")} <= known


def test_make_targets_in_the_documents_exist():
    """Every `make TARGET` of README and ARCHITECTURE is in the Makefile."""
    targets = set(re.findall(r"^([a-z]+):", (REPOSITORY / "Makefile").read_text(), re.M))
    text = README + (REPOSITORY / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"`make ([a-z]+)", text)) | {
        line.split()[1] for line in _shell_lines(text) if line.startswith("make ")
    }
    assert named
    assert named <= targets


def test_links_and_folders_in_the_documents_exist():
    """Files that README and ARCHITECTURE link to or list are there."""
    architecture = (REPOSITORY / "ARCHITECTURE.md").read_text()
    linked = re.findall(r"\]\(([^)#:]+)\)", README)
    listed = re.findall(r"^\| `([a-z_]+/[a-z_/]*)` \|", architecture, re.M)
    assert len(linked) >= 4
    assert len(listed) >= 5
    assert [path for path in (*linked, *listed) if not Path(REPOSITORY / path).exists()] == []


@pytest.mark.parametrize("page", sorted((REPOSITORY / "docs" / "examples").rglob("*.md")), ids=lambda page: page.name)
def test_links_between_the_examples_lead_somewhere(page):
    """Files that a lesson or a page beside it links to are there."""
    linked = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    assert [path for path in linked if not (page.parent / path).exists()] == []


def test_the_configuration_in_the_readme_is_valid():
    """A newcomer can copy the agent's configuration."""
    [text] = re.findall(r"```toml\n(.*?)```", README, re.S)
    config = parse(text)
    assert config.readers[0].kind == "m6e"


def test_the_rule_in_the_readme_is_the_one_of_the_demonstration(tmp_path):
    """The rule that the README shows compiles, to what the demonstration runs."""
    text, *others = re.findall(r"```wa\n(.*?)```", README, re.S)
    shown, run = tmp_path / "shown.wa", tmp_path / "run.wa"
    shown.write_text(text)
    run.write_text(RULE.format(a=DOCK, b=DOOR))
    assert load_rules(shown).rules[0].text() == load_rules(run).rules[0].text()
    for other in others:
        shown.write_text(other)
        assert len(load_rules(shown).rules) == 1
