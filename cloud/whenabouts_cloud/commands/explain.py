"""`whenabouts-cloud explain`: predict the behaviour of the rules of a file, and where they run.

Results go to stdout, mistakes to stderr; with --json everything is one object on stdout. Exit 0 when all is well, 2 when
the file has mistakes, a rule cannot run where it must, or the command is used wrongly.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

import click

from whenabouts_cloud.commands.rule_file import JSON, RULES, exit_with_mistakes, load_or_exit, print_json
from whenabouts_cloud.rules import CepRule, LatwinRule, Rule
from whenabouts_cloud.rules.explain_events import EventsExplained, explain_events
from whenabouts_cloud.rules.explain_pairs import Explanation
from whenabouts_cloud.rules.explain_pairs import explain as explanation
from whenabouts_cloud.rules.explain_states import StatesExplained, explain_states
from whenabouts_cloud.rules.explain_text import lines
from whenabouts_cloud.rules.pictures import picture
from whenabouts_cloud.rules.placement import GatewayStream, Placement, PlanError, compile_rules, place
from whenabouts_protocol import WireError
from whenabouts_protocol.messages.compiled_rule import encode_rules
from whenabouts_protocol.topics import is_name

MAX_STREAMS_BYTES = 1 << 24  # of a file of streams; a larger one is the wrong file
EXAMPLE = """\b
Example:
  whenabouts-cloud explain rules.wa --stream dock/tags=warehouse/gw-1 --stream shelf/1=warehouse/gw-2 --rate dock=10
\b
A file of streams is a JSON list of objects with stream and gateway, and if known site and length_us_max:
  [{"stream": "dock/tags", "site": "warehouse", "gateway": "gw-1", "length_us_max": 300000}]
"""


@click.command("explain", epilog=EXAMPLE)
@RULES
@click.option("--rule", "name", help="Only this rule.")
@click.option(
    "--svg",
    type=click.Path(path_type=Path),
    help="Draw a rule into this file: its automaton, the probability of its pairs, or its windows.",
)
@click.option(
    "--streams", "stream_file", type=click.Path(path_type=Path), help="JSON file: which gateway has which streams."
)
@click.option(
    "--stream", "stream_texts", multiple=True, metavar="NAME=[SITE/]GATEWAY", help="A stream and its gateway."
)
@click.option(
    "--rate", "rate_texts", multiple=True, metavar="STREAM=HZ", help="Readings a second of a declared STREAM."
)
@click.option(
    "--compiled",
    type=click.Path(path_type=Path),
    help="Write the message with the rules of each gateway into this folder: SITE.GATEWAY.rules.",
)
@JSON
def explain(
    rules: Path,
    name: str | None,
    svg: Path | None,
    stream_file: Path | None,
    stream_texts: tuple[str, ...],
    rate_texts: tuple[str, ...],
    compiled: Path | None,
    as_json: bool,
) -> None:
    """Show where each rule runs and why, which lengths can match, what must be tested, how long readings are kept.

    For a rule about an order of events: its automaton, its negations, and when each is final. For a rule about the states of
    a group: its gateways, the algorithm that decides, and the limit on the global states in its windows.
    """
    rule_file = load_or_exit(rules, as_json)
    chosen = [rule for rule in rule_file.rules if name in (None, rule.name)]
    if not chosen:
        if not rule_file.rules:
            raise click.UsageError(f"{rules}: found no RULE, expected one to explain")
        known = ", ".join(rule.name for rule in rule_file.rules)
        raise click.UsageError(f"--rule: found {name}, expected one of those in {rules}: {known}")
    streams = [*_streams(stream_file), *(_stream(text) for text in stream_texts)]
    rates_hz = _rates(rate_texts, {stream.name for stream in rule_file.streams})
    try:
        placements = place(chosen, streams)
    except PlanError as error:
        exit_with_mistakes(rules, [{"text": text} for text in error.mistakes], str(error), as_json)
    if compiled is not None:
        for place_name in sorted({p.gateway for p in placements if p.gateway is not None}, key=str):
            _write(compiled, place_name, encode_for(place_name, compile_rules(placements, *place_name)))
    if svg is not None:
        _draw(svg, chosen)
    explained = [_explained(p, rates_hz) for p in placements]
    if as_json:
        print_json({"file": str(rules), "ok": True, "rules": [dataclasses.asdict(e) for e in explained]})
    else:
        click.echo("\n\n".join("\n".join(lines(e)) for e in explained))


def _explained(placement: Placement, rates_hz: dict[str, float]) -> Explanation | EventsExplained | StatesExplained:
    if isinstance(placement.rule, LatwinRule):
        return explain_states(placement.rule, placement.reason)
    if isinstance(placement.rule, CepRule):
        return explain_events(placement.rule, placement.reason)
    return explanation(placement, rates_hz)


def _draw(file: Path, chosen: list[Rule]) -> None:
    if len(chosen) != 1:
        names = ", ".join(rule.name for rule in chosen)
        raise click.UsageError(f"--svg: found {names} to draw, expected one rule: choose with --rule")
    try:
        file.write_text(picture(chosen[0]), encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"--svg {file}: cannot write ({error})") from None


def encode_for(gateway: tuple[str | None, str], rules: Any) -> bytes:
    """Encode the message of a gateway's rules. Raises click.UsageError if its site is unknown or it is too large."""
    site, name = gateway
    if site is None:
        raise click.UsageError(f"--compiled: found gateway {name} without a site, expected --stream NAME=SITE/{name}")
    try:
        return encode_rules(site, name, rules)
    except WireError as error:
        raise click.UsageError(f"--compiled: the rules of {site}/{name} do not fit a message: {error}") from None


def _stream(text: str) -> GatewayStream:
    stream, equals, where = text.rpartition("=")
    site, slash, gateway = where.rpartition("/")
    if not equals or not stream or not is_name(gateway) or (slash and not is_name(site)):
        raise click.UsageError(f"--stream: found {text!r}, expected NAME=GATEWAY or NAME=SITE/GATEWAY")
    return GatewayStream(stream, gateway, site if slash else None)


def _streams(file: Path | None) -> list[GatewayStream]:
    if file is None:
        return []
    try:
        if file.stat().st_size > MAX_STREAMS_BYTES:
            raise click.UsageError(f"--streams {file}: found more than {MAX_STREAMS_BYTES} bytes: is this the file?")
        rows = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise click.UsageError(f"--streams {file}: cannot read ({error}), expected a JSON list") from None
    if not isinstance(rows, list):
        raise click.UsageError(f"--streams {file}: found {type(rows).__name__}, expected a list of objects")
    return [_row(file, number, row) for number, row in enumerate(rows)]


def _row(file: Path, number: int, row: Any) -> GatewayStream:
    known = {field.name for field in dataclasses.fields(GatewayStream)}
    where = f"--streams {file}, entry {number}"
    if not isinstance(row, dict) or not row.keys() <= known:
        raise click.UsageError(f"{where}: expected an object with {', '.join(sorted(known))} and nothing else")
    if not isinstance(row.get("stream"), str) or not is_name(row.get("gateway")):
        raise click.UsageError(f"{where}: expected a stream and a gateway")
    if not (row.get("site") is None or is_name(row["site"])):
        raise click.UsageError(f"{where}: found site {row['site']!r}, expected a name")
    length = row.get("length_us_max")
    if not (length is None or (type(length) is int and length >= 0)):
        raise click.UsageError(f"{where}: found length_us_max {length!r}, expected microseconds")
    return GatewayStream(**row)


def _rates(texts: tuple[str, ...], known: set[str]) -> dict[str, float]:
    rates = {}
    for text in texts:
        stream, _, number = text.partition("=")
        try:
            rate = float(number)
        except ValueError:
            rate = -1.0
        if stream not in known or not 0 <= rate < 1e9:
            raise click.UsageError(
                f"--rate: found {text!r}, expected STREAM=HZ with one of {', '.join(sorted(known)) or 'no streams'}"
            )
        rates[stream] = rate
    return rates


def _write(folder: Path, gateway: tuple[str | None, str], payload: bytes) -> None:
    path = folder / f"{gateway[0]}.{gateway[1]}.rules"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(payload)
    except OSError as error:
        raise click.UsageError(f"--compiled {path}: cannot write ({error})") from None
    click.echo(f"{path}: {len(payload)} bytes", err=True)
