"""`whenabouts-cloud`: land what gateways publish, and match readings that belong together in time."""

import click

try:
    from whenabouts_cloud.commands.cep import cep
    from whenabouts_cloud.commands.check import check
    from whenabouts_cloud.commands.correlate import correlate
    from whenabouts_cloud.commands.dashboard.dashboard import dashboard
    from whenabouts_cloud.commands.dashboard.plot import plot
    from whenabouts_cloud.commands.exchange.export import exports
    from whenabouts_cloud.commands.exchange.importing import imports
    from whenabouts_cloud.commands.experiments import experiments
    from whenabouts_cloud.commands.explain import explain
    from whenabouts_cloud.commands.ingest import ingest
    from whenabouts_cloud.commands.landing.landing_check import landing_group
    from whenabouts_cloud.commands.landing.upkeep import compact_landing, retain_landing
    from whenabouts_cloud.commands.latwin import latwin
    from whenabouts_cloud.commands.publish import publish
    from whenabouts_cloud.commands.run import run_all
    from whenabouts_cloud.commands.why_not import why_not_command
    from whenabouts_cloud.enrol.command import enrol
except ModuleNotFoundError as error:  # the edge extra installs this command without its dependencies
    if error.name is not None and error.name.startswith("whenabouts_"):
        raise  # a fault of this package
    raise SystemExit(
        f"whenabouts-cloud: package {error.name} is missing; install the extra: pip install 'whenabouts[cloud]'"
    ) from None


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="whenabouts")
def main() -> None:
    """The cloud side: land the readings of all gateways, and match those that belong together in time.

    \b
    Start with:  whenabouts-cloud ingest --broker localhost:1883 --landing ./landing
                 whenabouts-cloud run --landing ./landing --rule rules.wa --out ./results
    """


for command in (
    enrol,
    ingest,
    landing_group,
    compact_landing,
    retain_landing,
    check,
    explain,
    publish,
    correlate,
    cep,
    latwin,
    run_all,
    dashboard,
    plot,
    why_not_command,
    imports,
    exports,
    experiments,
):
    main.add_command(command)

if __name__ == "__main__":
    main()
