"""`whenabouts-sim`: simulated sites."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import click

try:
    from whenabouts_edge.capture.capture import SizeLimitError
    from whenabouts_sim.boards.command import board
    from whenabouts_sim.chaos.command import chaos
    from whenabouts_sim.demo.demo import Demo
    from whenabouts_sim.demo.office_run import OfficeRun
    from whenabouts_sim.judge.judgement import Judgement, flawless, table, together_lines
    from whenabouts_sim.logs.command import logs
    from whenabouts_sim.readers.faults import Faults
    from whenabouts_sim.readers.reader_run import KINDS, FaultOptions, ReaderRun, run_reader
    from whenabouts_sim.readers.recording import record_reader
    from whenabouts_sim.soak.command import soak
    from whenabouts_sim.stack.run_folder import in_folder
    from whenabouts_sim.stack.site_run import SiteRun
    from whenabouts_sim.stack.sources import new_seed
    from whenabouts_sim.swarm.run import Swarm
except ModuleNotFoundError as error:  # every extra installs this command, but not always its packages
    if error.name is not None and error.name.startswith("whenabouts_"):
        raise  # a fault of this package
    raise SystemExit(
        f"whenabouts-sim: package {error.name} is missing; install the extra: pip install 'whenabouts[sim]'"
    ) from None


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="whenabouts")
def main() -> None:
    """Simulated sites: tags, readers, wrong clocks, and what truly happened."""


main.add_command(board)
main.add_command(chaos)
main.add_command(logs)
main.add_command(soak)


@main.command()
@click.option(
    "--seed", type=click.IntRange(min=0), help="Decides world, clocks and faults; chosen and printed if not given."
)
@click.option(
    "--speed", default=1.0, show_default=True, type=click.FloatRange(0.1, 20), help="Speed of simulated time."
)
@click.option(
    "--trace", type=click.Path(path_type=Path), help="Replay this serial capture (or folder of captures) instead."
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep landing, results and logs in this new folder.",
)
@click.option(
    "--dashboard/--no-dashboard",
    default=True,
    show_default=True,
    help="Show the run in a browser; at a terminal until Ctrl-C.",
)
@click.option("--json", "as_json", is_flag=True, help="Print only the judgement, as one JSON object.")
def demo(seed: int | None, speed: float, trace: Path | None, keep: Path | None, dashboard: bool, as_json: bool) -> None:
    """Run two sites through agents, broker, ingest and Spark, and judge the result against the truth.

    \b
    Example:  whenabouts-sim demo --seed 7
              whenabouts-sim demo --trace capture.jsonl --speed 2
    """
    number = new_seed() if seed is None else seed

    def judged(judgement: Judgement) -> bool:
        click.echo(json.dumps(judgement.as_dict()) if as_json else table(judgement))
        return not as_json and sys.stdin.isatty() and sys.stdout.isatty()

    found = in_folder(keep, lambda folder: Demo(folder, number, speed, trace, as_json, dashboard).run(judged))
    sys.exit(0 if flawless(found) else 1)


@main.command()
@click.option(
    "--seed", type=click.IntRange(min=0), help="Decides presences and clocks; chosen and printed if not given."
)
@click.option("--virtual", is_flag=True, help="Without processes and MQTT: many hours in seconds.")
@click.option(
    "--speed", default=1.0, show_default=True, type=click.FloatRange(0.1, 20), help="Speed of simulated time."
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep landing, results and logs in this new folder.",
)
@click.option(
    "--phones", default=1, show_default=True, type=click.IntRange(1, 14), help="With --virtual: how many phones."
)
@click.option(
    "--hours", default=100, show_default=True, type=click.IntRange(1, 10_000), help="With --virtual: for how long."
)
@click.option(
    "--clock-error",
    default=5.0,
    show_default=True,
    type=click.FloatRange(0, 3600),
    help="With --virtual: how wrong clocks may be, in seconds.",
)
@click.option("--json", "as_json", is_flag=True, help="Print only the judgement, as one JSON object.")
@click.pass_context
def office(
    context: click.Context, seed: int | None, virtual: bool, speed: float, keep: Path | None, phones: int, hours: int,
    clock_error: float, as_json: bool,
) -> None:  # fmt: skip
    """Watch phones, a speaker's tag and a projector: when were all in the meeting room at once?

    Three agents in a group, broker, ingest and the Spark job of a DEFINITELY rule; with --virtual the same workload as
    published in 2011, judged in this process.

    \b
    Example:  whenabouts-sim office --seed 7
              whenabouts-sim office --virtual --phones 7 --clock-error 0.1
    """
    _check_options(context, virtual)
    number = new_seed() if seed is None else seed
    if virtual:
        from whenabouts_sim.demo.office import office_table, run_office

        summary = run_office(number, phones + 2, hours, clock_error)
        click.echo(json.dumps(summary.as_dict()) if as_json else f"seed {number}: {office_table(summary)}")
        sys.exit(0 if summary.sound else 1)
    judged = in_folder(keep, lambda folder: OfficeRun(folder, number, speed, as_json).run())
    click.echo(json.dumps(judged.as_dict()) if as_json else "\n".join(together_lines("the phone is muted", judged)))
    sys.exit(0 if judged.sound else 1)


@main.command()
@click.option("--gateways", default=200, show_default=True, type=click.IntRange(1, 10_000), help="How many gateways.")
@click.option(
    "--rate",
    type=click.FloatRange(1, 1e6),
    help="Readings a second of all gateways together; if not given, raised until the system is overloaded.",
)
@click.option(
    "--seconds", default=10.0, show_default=True, type=click.FloatRange(1, 3600), help="How long each rate is held."
)
@click.option(
    "--keep", type=click.Path(path_type=Path, file_okay=False), help="Keep landing and logs in this new folder."
)
@click.option("--json", "as_json", is_flag=True, help="Print only the figures, as one JSON object.")
def swarm(gateways: int, rate: float | None, seconds: float, keep: Path | None, as_json: bool) -> None:
    """Drive one broker and one ingest with many light gateways, and compare the landing with the truth.

    Latency is from the first byte of a reading to the cloud's confirmation at its gateway. Exits with 1 when anything is
    missing, repeated or different.

    \b
    Example:  whenabouts-sim swarm --gateways 200
              whenabouts-sim swarm --gateways 1000 --rate 2000 --seconds 60
    """
    result = in_folder(keep, lambda folder: Swarm(folder, gateways, rate, seconds, quiet=as_json).run())
    click.echo(json.dumps(result.as_dict()) if as_json else result.text())
    sys.exit(0 if result.exact else 1)


def _per_thousand(name: str, about: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    text = f"How many of 1000 frames {about}."
    return click.option(name, default=0, show_default=True, type=click.IntRange(0, 1000), help=text)


@main.command()
@click.argument("name", type=click.Choice(sorted(KINDS)))
@click.option("--port", type=click.Path(path_type=Path), help="Path of the port, a link; in a new folder if not given.")
@click.option("--seed", type=click.IntRange(min=0), help="Decides tags and faults; chosen and printed if not given.")
@click.option("--rate", default=2.0, show_default=True, type=click.FloatRange(0.01, 200), help="Sightings a second.")
@click.option(
    "--tags", default=20, show_default=True, type=click.IntRange(1, 100_000), help="How many different tags pass."
)
@click.option("--seconds", type=click.FloatRange(min=0), help="End after this many seconds; until Ctrl-C if not given.")
@click.option(
    "--truth",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the sightings that leave the reader to this file.",
)
@_per_thousand("--split", "arrive in pieces")
@_per_thousand("--noise", "have noise in front")
@_per_thousand("--flipped", "have a bit flipped")
@_per_thousand("--head-lost", "lack their beginning")
@_per_thousand("--glued", "lack their last byte, so that the next one follows at once")
@click.option("--mid-frame-start", is_flag=True, help="The first frame after power-on lacks its beginning.")
@click.option(
    "--brown-out",
    default=0.0,
    type=click.FloatRange(min=0),
    help="m6e: seconds between brown-outs, each of which reboots it.",
)
@click.option("--unplug", default=0.0, type=click.FloatRange(min=0), help="Seconds between unpluggings, each for 2 s.")
def reader(
    name: str, port: Path | None, seed: int | None, rate: float, tags: int, seconds: float | None, truth: Path | None,
    split: int, noise: int, flipped: int, head_lost: int, glued: int, mid_frame_start: bool, brown_out: float, unplug: float,
) -> None:  # fmt: skip
    """Simulate one reader on a pseudo-terminal; prints the path of its port.

    It answers and reports with the timing of the real one. At the end it prints how many sightings it reported, how many of
    them damaged, and how many it did not see.

    \b
    Example:  whenabouts-sim reader rdm6300 --port /tmp/gate --rate 5 --flipped 50
              whenabouts-edge capture /tmp/gate gate.trace --baud 9600
    """
    number = new_seed() if seed is None else seed

    def serve(folder: Path) -> str:
        path = port or folder / name
        faults = Faults(split, noise, flipped, head_lost, glued, mid_frame_start)
        run = ReaderRun(name, path, number, rate, tags, faults, FaultOptions(brown_out, unplug), truth)
        return run_reader(run, seconds, lambda: click.echo(str(path)), lambda text: click.echo(text, err=True))

    click.echo(f"seed {number}", err=True)
    click.echo(in_folder(None, serve), err=True)


@main.command()
@click.argument("name", type=click.Choice(sorted(KINDS)))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--seed", type=click.IntRange(min=0), help="Decides tags; chosen and printed if not given.")
@click.option("--rate", default=2.0, show_default=True, type=click.FloatRange(0.01, 200), help="Sightings a second.")
@click.option(
    "--tags", default=20, show_default=True, type=click.IntRange(1, 100_000), help="How many different tags pass."
)
@click.option(
    "--seconds",
    default=10.0,
    show_default=True,
    type=click.FloatRange(0.1, 86_400),
    help="Length of the trace in its own time.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def record(name: str, file: Path, seed: int | None, rate: float, tags: int, seconds: float, force: bool) -> None:
    """Write to FILE the trace that an agent driving a simulated reader would record, both directions, without waiting.

    Its time is simulated: the same seed gives the same file. `replay://FILE` plays it wherever a port is expected.

    \b
    Example:  whenabouts-sim record m6e dock.trace --seed 7 --rate 4
              whenabouts-edge trace dock.trace
    """
    if file.exists() and not force:
        raise click.UsageError(f"{file} exists; choose another name, or --force to overwrite it")
    number = new_seed() if seed is None else seed
    try:
        with file.open("wb") as sink:
            frames = record_reader(name, number, rate, tags, seconds, sink)
    except (OSError, SizeLimitError) as error:
        raise click.ClickException(f"{file}: cannot be written: {error}") from None
    click.echo(f"{file}: seed {number}, {frames} frames")


@main.command()
@click.option("--seed", type=click.IntRange(min=0), help="Decides events and clocks; chosen and printed if not given.")
@click.option("--broker", metavar="HOST:PORT", help="A running broker; starts one if not given.")
@click.option("--seconds", type=click.FloatRange(min=0), help="End after this many seconds; until Ctrl-C if not given.")
@click.option(
    "--keep", type=click.Path(path_type=Path, file_okay=False), help="Keep truth, spools and logs in this new folder."
)
def site(seed: int | None, broker: str | None, seconds: float | None, keep: Path | None) -> None:
    """Run simulated readers behind real agents with wrong clocks, until Ctrl-C.

    What truly happened is written to truth/READER.jsonl in the folder.

    \b
    Example:  whenabouts-sim site --seed 7 --keep site-7
              whenabouts-cloud ingest --broker localhost:1883 --landing ./landing   (with the port that it prints)
    """
    number = new_seed() if seed is None else seed
    address = None if broker is None else _address(broker)
    say = lambda text: click.echo(text, err=True)  # noqa: E731
    count = in_folder(keep, lambda folder: SiteRun(folder, number, address, say).run(seconds))
    click.echo(f"{count} sightings", err=True)


def _address(broker: str) -> tuple[str, int]:
    host, _, port = broker.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise click.UsageError(f"--broker: found {broker!r}, expected HOST:PORT, such as localhost:1883")
    return host, int(port)


def _check_options(context: click.Context, virtual: bool) -> None:
    """Refuse options that the chosen kind of run ignores."""
    others = ("speed", "keep") if virtual else ("phones", "hours", "clock_error")
    for name in others:
        if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option}: belongs to a run {'without' if virtual else 'with'} --virtual")


if __name__ == "__main__":
    main()
