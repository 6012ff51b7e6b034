"""`whenabouts-cloud publish`: send rules to the gateways that can run them."""

import json
from pathlib import Path

import click

from whenabouts_cloud.broker.connection import BrokerError
from whenabouts_cloud.broker.rules_client import RulesClient
from whenabouts_cloud.commands.broker_options import broker_options, credentials
from whenabouts_cloud.rules import CorrelateRule, RuleError, load_rules
from whenabouts_cloud.rules.placement import Placement, PlanError, announced, compile_rules, place
from whenabouts_protocol import WireError
from whenabouts_protocol.messages.compiled_rule import encode_rules


@click.command("publish", epilog="\b\nExample:\n  whenabouts-cloud publish rules.wa --broker localhost:1883")
@click.argument("rules", metavar="RULES", type=click.Path(path_type=Path))
@broker_options
@click.option("--dry-run", is_flag=True, help="Show which rules would go where, and send nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def publish(
    rules: Path,
    broker: tuple[str, int],
    username: str | None,
    password_file: Path | None,
    ca_file: str | None,
    cert_file: str | None,
    key_file: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Send each rule whose streams are all on one gateway to that gateway, which runs it from then on.

    The streams of each gateway are read from the births it has published to the broker. The rules of a file replace the
    rules that gateways had; a gateway for which the file has no rule stops running any.
    """
    try:
        correlations = [rule for rule in load_rules(rules).rules if isinstance(rule, CorrelateRule)]
    except RuleError as error:
        raise click.UsageError(str(error)) from None
    asking = credentials(username, password_file, ca_file, cert_file, key_file)
    try:
        with RulesClient(*broker, asking) as client:
            births = client.births()
            placements = place(correlations, announced(births.known.values()))
            messages = {x: encode_rules(*x, compile_rules(placements, *x)) for x in sorted(births.known)}
            if not dry_run:
                client.publish(messages)
    except PlanError as error:
        raise click.UsageError(str(error)) from None
    except (BrokerError, WireError) as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        placed = [{"rule": p.rule.name, "where": p.where, "gateway": _where(p), "reason": p.reason} for p in placements]
        gateways = ["/".join(x) for x in messages]
        click.echo(json.dumps({"rules": placed, "gateways": gateways, "refused": births.refused, "sent": not dry_run}))
        return
    for p in placements:
        click.echo(f"rule {p.rule.name}: {_where(p) or 'in the cloud'} ({p.reason})")
    verb = "would get their rules" if dry_run else "got their rules"
    click.echo(f"{len(messages)} gateways {verb}" + (f", {births.refused} births refused" if births.refused else ""))


def _where(placement: Placement) -> str | None:
    return placement.a[0].place if placement.where == "edge" else None
