"""`whenabouts-cloud experiments correlation`: the papers' figures measured again on this machine."""

import json
import time
from pathlib import Path

import click

EXAMPLE = """\b
Example:
  whenabouts-cloud experiments correlation --out figures
"""


@click.group("experiments")
def experiments() -> None:
    """Repeat the published experiments behind the engines."""


@experiments.command("correlation", epilog=EXAMPLE)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for plots, report.md and figures.json."
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON instead of tables.")
@click.option(
    "--quick", is_flag=True, help="A few hundred tuples a run: shows that it works, says nothing about speed."
)
@click.option("--seed", default=2009, show_default=True, help="Seed of the generated streams.")
def correlation(out: Path | None, as_json: bool, quick: bool, seed: int) -> None:
    """Figures 4-6 of the 2009 paper and 3-9 of the 2010 paper: tables and what differs, with --out also plots.

    Takes under two minutes on two cores. Numbers are CPU times of this machine; counts are the same everywhere.
    """
    from whenabouts_cloud.experiments.correlation import FULL, QUICK, figures
    from whenabouts_cloud.experiments.report import as_json as plain
    from whenabouts_cloud.experiments.report import markdown, plot

    if out is not None:
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            raise click.ClickException(
                "plots: found no matplotlib; pip install 'whenabouts[bench]', or leave out --out"
            ) from None
        out.mkdir(parents=True, exist_ok=True)
    size = QUICK if quick else FULL
    began = time.monotonic()
    found = figures(size, seed, lambda text: click.echo(f"{time.monotonic() - began:5.1f} s  {text}", err=True))
    preface = (
        f"Measured in {time.monotonic() - began:.0f} s, seed {seed}. Scaled down: {size.tuples} tuples a file of the rate "
        f"experiments, {size.block_tuples} for block sizes, {size.seq_tuples} in seq; rates and buffers as in the papers."
    )
    report = markdown(found, preface)
    data = json.dumps({"seed": seed, "quick": quick, "figures": [plain(figure) for figure in found]}, indent=2)
    if out is not None:
        for figure in found:
            plot(figure, out)
        (out / "report.md").write_text(report, encoding="utf-8")
        (out / "figures.json").write_text(data + "\n", encoding="utf-8")
        click.echo(f"{len(found)} plots, report.md and figures.json in {out}", err=True)
    click.echo(data if as_json else report, nl=as_json)
