"""`whenabouts-cloud experiments correlation`, `... cep`, `... latwin`: measure the papers' figures again."""

import gc
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from whenabouts_cloud.research.experiments.figures import Figure

EXAMPLE = """\b
Example:
  whenabouts-cloud experiments correlation --out figures
"""


EXAMPLE_CEP = """\b
Example:
  whenabouts-cloud experiments cep --out figures
"""


EXAMPLE_LATWIN = """\b
Example:
  whenabouts-cloud experiments latwin --out figures
"""


@click.group("experiments")
def experiments() -> None:
    """Repeat the published experiments behind the engines."""


@experiments.command("correlation", epilog=EXAMPLE)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for plots, report.md and figures.json."
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON instead of tables.")
@click.option("--quick", is_flag=True, help="A few hundred tuples a run: tests that it works, not its speed.")
@click.option("--seed", default=2009, show_default=True, help="Seed of the generated streams.")
def correlation(out: Path | None, as_json: bool, quick: bool, seed: int) -> None:
    """Figures 4-6 of the 2009 paper and 3-9 of the 2010 paper: tables and the differences, with --out also plots.

    Takes under two minutes on two cores. Numbers are CPU times of this machine; counts are the same everywhere.
    """
    from whenabouts_cloud.research.experiments.correlation import FULL, QUICK, figures

    size = QUICK if quick else FULL
    scaled = (
        f"Scaled down: {size.tuples} tuples a file of the rate experiments, {size.block_tuples} for block sizes, "
        f"{size.seq_tuples} in seq; rates and buffers as in the papers."
    )
    title = "The papers' correlation experiments, run here"
    _measure(lambda say: figures(size, seed, say), out, as_json, seed, quick, scaled, title)


@experiments.command("cep", epilog=EXAMPLE_CEP)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for plots, report.md and figures.json."
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON instead of tables.")
@click.option("--quick", is_flag=True, help="Some thousand events a run: tests that it works, not its speed.")
@click.option("--seed", default=2016, show_default=True, help="Seed of the generated streams.")
def cep(out: Path | None, as_json: bool, quick: bool, seed: int) -> None:
    """Figures 4-8 of the INFA-HTS paper and harder workloads: tables and the differences, with --out also plots.

    Takes under two minutes on two cores. Costs are CPU times of this machine; waits and accuracy are the same everywhere.
    """
    from whenabouts_cloud.research.experiments.cep import FULL, QUICK, figures

    size = QUICK if quick else FULL
    workload = (
        "Workload of Table 1: SEQ(A, B, !C, D, E, F, G) within 40 units, ten types alike, one event a key and unit, "
        f"{size.events} events, late by up to 10 units; one of five events a punctuation for the conservative method."
    )
    title = "The INFA-HTS paper's experiments, run here"
    _measure(lambda say: figures(size, seed, say), out, as_json, seed, quick, workload, title)


@experiments.command("latwin", epilog=EXAMPLE_LATWIN)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for plots, report.md and figures.json."
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON instead of tables.")
@click.option(
    "--quick", is_flag=True, help="Some hours of two and three processes: tests that it works, not its speed."
)
@click.option("--seed", default=2011, show_default=True, help="Seed of the simulated offices.")
def latwin(out: Path | None, as_json: bool, quick: bool, seed: int) -> None:
    """Table II and Figures 4-7 of the Lat-Win paper, and the effect of bounded clocks: tables, with --out also plots.

    Takes about two minutes on two cores. Times are CPU times of this machine; sizes and shares are the same everywhere.
    """
    from whenabouts_cloud.research.experiments.latwin import FULL, QUICK, figures

    size = QUICK if quick else FULL
    workload = (
        f"Workload of section 6: {size.hours} h of a smart office, predicates on for 25 and off for 5 min on average, "
        "sampled each minute; control messages and reports take 0.5 s on average unless stated otherwise."
    )
    title = "The Lat-Win paper's experiments, run here"
    _measure(lambda say: figures(size, seed, say), out, as_json, seed, quick, workload, title)


def _measure(
    figures: "Callable[[Callable[[str], None]], list[Figure]]", out: Path | None, as_json: bool, seed: int, quick: bool,
    about: str, title: str,
) -> None:  # fmt: skip
    """Run the experiments, with progress on stderr; write plots, report and figures to `out`, print report or figures."""
    from whenabouts_cloud.research.experiments.figures import as_json as plain
    from whenabouts_cloud.research.experiments.figures import markdown, plot

    if out is not None:
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            raise click.ClickException(
                "plots: found no matplotlib; pip install 'whenabouts[research]', or leave out --out"
            ) from None
        out.mkdir(parents=True, exist_ok=True)
    gc.freeze()  # the collector skips loaded objects, so it does not disturb measurements
    began = time.monotonic()
    measured = figures(lambda text: click.echo(f"{time.monotonic() - began:5.1f} s  {text}", err=True))
    preface = f"Measured in {time.monotonic() - began:.0f} s, seed {seed}. {about}"
    report = markdown(measured, preface, title)
    data = json.dumps({"seed": seed, "quick": quick, "figures": [plain(figure) for figure in measured]}, indent=2)
    if out is not None:
        for figure in measured:
            plot(figure, out)
        (out / "report.md").write_text(report, encoding="utf-8")
        (out / "figures.json").write_text(data + "\n", encoding="utf-8")
        click.echo(f"{len(measured)} plots, report.md and figures.json in {out}", err=True)
    click.echo(data if as_json else report, nl=as_json)
