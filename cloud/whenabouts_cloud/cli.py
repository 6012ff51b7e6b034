"""`whenabouts-cloud`: land what gateways publish, and find what belongs together."""

import click

try:
    from whenabouts_cloud.correlate_command import correlate
    from whenabouts_cloud.ingest_command import ingest
except ModuleNotFoundError as error:  # the edge extra brings this command along, but not what it needs
    raise SystemExit(
        f"whenabouts-cloud: package {error.name} is missing; install the extra: pip install 'whenabouts[cloud]'"
    ) from None


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="whenabouts")
def main() -> None:
    """The cloud side: land the readings of all gateways, and find the pairs that correlate in time.

    \b
    Start with:  whenabouts-cloud ingest --broker localhost:1883 --landing ./landing
                 whenabouts-cloud correlate --landing ./landing --rule rules.wa --out ./pairs
    """


main.add_command(ingest)
main.add_command(correlate)

if __name__ == "__main__":
    main()
