"""A command of `whenabouts-cloud experiments` run once for all tests of a module, and the figures that it wrote."""

import json
import math
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner, Result

from whenabouts_cloud.commands.experiments import experiments
from whenabouts_cloud.research.experiments.figures import Figure


class Run(NamedTuple):
    """Result and output folder of the command."""

    result: Result
    folder: Path

    def data(self) -> dict:
        """Content of figures.json, in which nan and infinity are refused."""
        return json.loads((self.folder / "figures.json").read_text(encoding="utf-8"), parse_constant=_refused)

    def figures(self) -> dict[str, Figure]:
        """The figures by key; a point that a series does not have is nan."""
        figures = [Figure(**figure) for figure in self.data()["figures"]]
        for figure in figures:
            for values in figure.series.values():
                values[:] = [math.nan if y is None else y for y in values]
        return {figure.key: figure for figure in figures}


def run_quick(name: str, folder: Path) -> Run:
    """Run the experiments of a paper small, with plots, report and figures in the folder."""
    result = CliRunner().invoke(experiments, [name, "--quick", "--out", str(folder), "--seed", "7"])
    assert result.exit_code == 0, result.output
    return Run(result, folder)


def _refused(name: str) -> None:
    raise AssertionError(f"figures.json: found {name}, expected a number or null")
