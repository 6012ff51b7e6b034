"""`whenabouts-sim soak`: the real processes for many minutes, killed at random."""

import json
import sys
from pathlib import Path

import click


@click.command()
@click.option(
    "--seed", type=click.IntRange(min=0), help="Decides events, clocks and kills; chosen and printed if not given."
)
@click.option(
    "--minutes", default=30.0, show_default=True, type=click.FloatRange(0.5, 24 * 60), help="How long events happen."
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep landing, results and logs in this new folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print only the verdict, as one JSON object.")
def soak(seed: int | None, minutes: float, keep: Path | None, as_json: bool) -> None:
    """Run two sites through agents, mosquitto, two ingests and Spark, and kill each of them now and then.

    At the end what landed and the results are compared with what truly happened. Exits with 1 when a reading is lost or
    twice, a stamp wrong, a result missing, wrong or twice, or when the memory of a part grows. Kills come from the seed;
    what they interrupt depends on the machine.

    \b
    Example:  whenabouts-sim soak --minutes 5 --seed 7
    """
    from whenabouts_sim.soak.soak_run import Soak
    from whenabouts_sim.stack.run_folder import in_folder
    from whenabouts_sim.stack.sources import new_seed

    number = new_seed() if seed is None else seed

    def say(text: str) -> None:
        click.echo(text, err=True)

    say(f"seed {number}, {minutes:g} min of events")
    verdict = in_folder(keep, lambda folder: Soak(folder, number, 60 * minutes, say).run())
    click.echo(json.dumps(verdict.as_dict()) if as_json else verdict.text())
    if not verdict.sound and keep is None:
        say(
            f"its files are gone; to keep them: whenabouts-sim soak --seed {number} --minutes {minutes:g} --keep FOLDER"
        )
    sys.exit(0 if verdict.sound else 1)
