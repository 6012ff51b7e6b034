"""`whenabouts-cloud`: land what gateways publish, and find what belongs together."""

import click

try:
    from whenabouts_cloud.cep_command import cep
    from whenabouts_cloud.correlate_command import correlate
    from whenabouts_cloud.experiments_command import experiments
    from whenabouts_cloud.import_command import imports
    from whenabouts_cloud.ingest_command import ingest
    from whenabouts_cloud.latwin_command import latwin
    from whenabouts_cloud.publish_command import publish
    from whenabouts_cloud.rules_command import check, explain
    from whenabouts_cloud.run_command import run_all
    from whenabouts_cloud.why_not_command import why_not_command
except ModuleNotFoundError as error:  # the edge extra brings this command along, but not what it needs
    raise SystemExit(
        f"whenabouts-cloud: package {error.name} is missing; install the extra: pip install 'whenabouts[cloud]'"
    ) from None


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="whenabouts")
def main() -> None:
    """The cloud side: land the readings of all gateways, and find what belongs together in time.

    \b
    Start with:  whenabouts-cloud ingest --broker localhost:1883 --landing ./landing
                 whenabouts-cloud run --landing ./landing --rule rules.wa --out ./results
    """


for command in (
    ingest,
    check,
    explain,
    publish,
    correlate,
    cep,
    latwin,
    run_all,
    why_not_command,
    imports,
    experiments,
):
    main.add_command(command)

if __name__ == "__main__":
    main()
