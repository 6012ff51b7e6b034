"""`whenabouts-cloud why-not`: explain how far a rule's pattern matched for a key around a time, and what prevented a match.

Reads the landing without Spark, and only the rows of the key within two windows of the time. The explanation goes to stdout,
mistakes to stderr. Exit 0 with any explanation, 2 on wrong usage.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pyarrow as pa

from whenabouts_cloud.commands.options import landing_option, rule_name_option
from whenabouts_cloud.display_time import headline, shown
from whenabouts_cloud.frontier.times import INT64_MAX
from whenabouts_cloud.jobs.work import choose_rule
from whenabouts_cloud.landing.schema import IDENTITY, SCHEMA
from whenabouts_cloud.pattern.expressions import FIELDS, split_column
from whenabouts_cloud.rules import CepRule
from whenabouts_protocol.reading import NO_EVENT_KINDS

if TYPE_CHECKING:
    import pyarrow.dataset as ds

    from whenabouts_cloud.cep.explain.explanation import Explanation, Seen
    from whenabouts_cloud.cep.uncertain.causal import Clocks

MAX_ROWS = 200_000  # read from the landing; the output says if there are more

EXAMPLE = """\b
Example:
  whenabouts-cloud why-not --landing landing --rule theft.wa urn:epc:1:4711 2026-11-20T18:05:00Z
"""


@click.command("why-not", epilog=EXAMPLE)
@click.argument("key", metavar="KEY")
@click.argument("time", metavar="TIME")
@landing_option()
@click.option(
    "--rule", "rule_file", required=True, type=click.Path(path_type=Path), help="File with streams and rules."
)
@rule_name_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def why_not_command(key: str, time: str, landing: Path, rule_file: Path, rule_name: str | None, as_json: bool) -> None:
    """Explain why a rule about an order of events emitted no match for KEY around TIME, or which match it emitted.

    TIME is ISO 8601, UTC if it names no zone, or microseconds since 1970. The answer is about the event of KEY nearest to
    TIME that could be an element of the pattern.
    """
    from whenabouts_cloud.cep.explain.explanation import lines
    from whenabouts_cloud.cep.explain.why_not import why_not  # loads numba

    rule, time_us = choose_rule(rule_file, rule_name, CepRule), _time_us(time)
    if not landing.is_dir():
        raise click.UsageError(f"--landing: found no folder {landing}, expected what the ingest writes")
    rows, repeats, cut = read_rows(landing, rule, key, time_us)
    events = seen(rule, rows, key)
    clocks = clocks_of(landing, [row for _, row in events]) if rule.pattern.mode == "causal" else None
    explanation = why_not(rule.pattern, rule.type_names, [one for one, _ in events], time_us, rule.longest_us, clocks)
    if as_json:
        click.echo(json.dumps(_as_json(rule, key, explanation, len(rows), repeats, cut)))
        return
    said = lines(explanation)
    click.echo(f"rule {rule.name}, key {shown(key)}, around {headline(time_us, 'auto')}: {said[0]}")
    for line in said[1:]:
        click.echo(shown(line))
    click.echo(f"  looked at {len(rows)} readings{f', {repeats} repeats dropped' if repeats else ''}")
    if cut:
        click.echo(f"  more than {MAX_ROWS} readings have landed: some were not examined")


def read_rows(landing: Path, rule: CepRule, key: str, time_us: int) -> tuple[list[dict[str, Any]], int, bool]:
    """Read (readings within reach, each once; number of repeats; True if there were more than MAX_ROWS).

    Raises:
        click.ClickException: a file of the landing cannot be read.
    """
    import pyarrow.dataset as ds  # loads pandas, which no other command needs to start

    reach = 2 * rule.pattern.window_us + rule.longest_us + max(abs(s.offset_us) for s in rule.streams)
    first, last = max(time_us - reach, -INT64_MAX), min(time_us + reach, INT64_MAX)
    wanted = (ds.field("t_max") >= first) & (ds.field("t_min") <= last)
    if rule.pattern.per_key:
        wanted &= ds.field("key") == key
    rows = _read(landing, wanted, MAX_ROWS + 1).to_pylist()
    once = {tuple(row[name] for name in IDENTITY): row for row in reversed(rows[:MAX_ROWS])}
    kept = [row for row in once.values() if row["kind"] not in NO_EVENT_KINDS]
    return kept, len(rows[:MAX_ROWS]) - len(once), len(rows) > MAX_ROWS


def _read(landing: Path, wanted: "ds.Expression", limit: int) -> pa.Table:
    import pyarrow.dataset as ds

    try:
        # Skips names that begin with "_" or ".": watermarks, dead letters, unfinished files.
        return ds.dataset(landing, schema=SCHEMA, format="parquet").scanner(filter=wanted).head(limit)
    except (OSError, pa.ArrowException) as error:
        raise click.ClickException(
            f"--landing {landing}: cannot be read ({error}), expected what the ingest writes"
        ) from None


def clocks_of(landing: Path, rows: list[dict[str, Any]]) -> "Clocks":
    """Return the vector clocks of readings; their counts refer to views, which state readings of the same boots define.

    Raises:
        click.ClickException: a file of the landing cannot be read, or more than MAX_ROWS readings hold views.
    """
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    from whenabouts_cloud.cep.shard.views import MARK, Views, runs_of

    boots = sorted({row["boot"] for row in rows})
    states = _read(landing, ds.field("boot").isin(boots) & pc.match_substring(ds.field("attrs"), MARK), MAX_ROWS + 1)
    if states.num_rows > MAX_ROWS:
        raise click.ClickException(
            f"--landing {landing}: found more than {MAX_ROWS} readings with views, expected at most that many; "
            "use a copy that holds only the hours around TIME"
        )
    views = Views()
    views.add(runs_of(states))
    return views.clocks_of(pa.Table.from_pylist(rows, schema=SCHEMA))


def seen(rule: CepRule, rows: list[dict[str, Any]], key: str) -> "list[tuple[Seen, dict[str, Any]]]":
    """Return the readings as events of the rule, each with its reading; one event for each stream that covers a reading."""
    from whenabouts_cloud.cep.explain.explanation import Seen

    columns = [name for name in rule.plan().attributes if name not in ("t_min", "t_max")]
    codes: dict[str, int] = {}
    events = []
    for row in rows:
        attributes = _json(row["attrs"])
        fields = row | {"value": _json(row["value"])}
        numbers = {
            name: column_of(fields, attributes if isinstance(attributes, dict) else {}, name, codes) for name in columns
        }
        for code, stream in enumerate(rule.streams):
            if stream.matches(row["site"], row["gateway"], row["stream"]):
                name = f"{row['stream']}@{row['site']}/{row['gateway']} {row['boot']}:{row['seq']}"
                t_min, t_max = (row[side] + stream.offset_us for side in ("t_min", "t_max"))
                events.append((Seen(code, t_min, t_max, name, numbers, row["key"] == key), row))
    return events


def column_of(fields: Mapping[str, Any], attributes: Mapping[str, Any], column: str, codes: dict[str, int]) -> float:
    """Value of a column for conditions, as in `pattern.expressions`; each text gets a code, by which texts are compared."""
    name, word = split_column(column)
    value = fields[name] if name in FIELDS else attributes.get(name.removeprefix("attrs."))
    if value is None:
        return float("nan")
    if word is not None:
        return float(value == word)
    if isinstance(value, str):
        return float(codes.setdefault(value, len(codes)))
    return float(value) if isinstance(value, int | float) else float("nan")


def _json(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:  # not written by the ingest: no value
        return None


def _time_us(text: str) -> int:
    try:
        return min(max(int(text), -INT64_MAX), INT64_MAX)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(
            f"TIME: found {text!r}, expected ISO 8601 such as 2026-11-20T18:05:00Z, or microseconds since 1970"
        ) from None
    zoned = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _as_json(
    rule: CepRule, key: str, explanation: "Explanation", readings: int, repeats: int, cut: bool
) -> dict[str, Any]:
    def event(one: "Seen | None") -> dict[str, Any] | None:
        return (
            None
            if one is None
            else {"stream": rule.type_names[one.type_code], "t_min": one.t_min, "t_max": one.t_max, "reading": one.name}
        )

    return {
        "verdict": explanation.verdict,
        "time_us": explanation.time_us,
        "probability": explanation.probability,
        "left_out": explanation.left_out,
        "searched_all": explanation.searched_all,
        "rule": rule.name,
        "key": key,
        "focus": event(explanation.focus),
        "elements": [
            {"name": e.name, "event": event(e.event), "failure": e.failure, "reason": e.reason}
            for e in explanation.elements
        ],
        "blockers": [{"negation": b.negation, "event": event(b.event), "where": b.where} for b in explanation.blockers],
        "readings": readings,
        "repeats": repeats,
        "more_readings_landed": cut,
    }
