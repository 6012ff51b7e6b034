"""The examples in the help of every command name commands and options that there are."""

import re

import click
import pytest

from whenabouts_cloud.cli import main as cloud
from whenabouts_edge.cli import main as edge
from whenabouts_sim.cli import main as sim

PROGRAMS = {"whenabouts-edge": edge, "whenabouts-cloud": cloud, "whenabouts-sim": sim}


def examples():
    """Every line of help that shows one of our commands with what follows it."""
    for program in PROGRAMS.values():
        for command in program.commands.values():
            text = f"{command.help}\n{command.epilog or ''}"
            for example in re.finditer(r"(whenabouts-\w+) ([\w-]+) ([^\n`]*)", text):
                yield example.groups()


@pytest.mark.parametrize(("program", "name", "rest"), sorted(set(examples())))
def test_an_example_can_be_typed(program, name, rest):
    """The command is there and knows each option; except click's own --help."""
    command = PROGRAMS[program].commands[name]
    if isinstance(command, click.Group):
        command = command.commands[rest.split()[0]]
    known = {text for option in command.params if isinstance(option, click.Option) for text in option.opts}
    assert set(re.findall(r"(?<!\S)--[\w-]+", rest)) <= known
