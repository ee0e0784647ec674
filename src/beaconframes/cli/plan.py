"""``beaconframes plan``: estimate the requests of a load."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from beaconframes.cli import loader_options
from beaconframes.cli.connection_options import connection_options, open_explorer
from beaconframes.cli.docstrings import describe
from beaconframes.cli.from_signature import command, list_arguments
from beaconframes.cli.loader_options import LoaderGroup
from beaconframes.cli.rendering import print_object

if TYPE_CHECKING:
    import click

    from beaconframes.cli.loader_options import Loader


def build_command(name: str, loader: Loader) -> click.Command:
    """Return the command that plans a call of *loader*."""

    @command(
        *connection_options(),
        name=name,
        text=f"Estimate the requests of this load: {describe(loader)}",
        arguments=loader_options.list_arguments(loader),
    )
    def print_plan(arguments: dict[str, Any], **values: Any) -> None:
        show_plan(loader, arguments, values)

    return print_plan


def build_report() -> click.Command:
    """Return the command that plans a report."""
    from beaconframes.cli.report import TEXTS, read_files
    from beaconframes.reports import report

    arguments = list_arguments(report, ["validators", "interactive"], texts=TEXTS)

    @command(*connection_options(), name="report", arguments=arguments)
    def plan_report(
        arguments: dict[str, Any], validators: str | None = None, **values: Any
    ) -> None:
        """Estimate the requests of a report, as the command report makes it."""
        read_files(arguments, validators)
        show_plan(report, arguments, values)

    return plan_report


def show_plan(function: Loader, arguments: dict[str, Any], values: dict[str, Any]) -> None:
    """Print the plan of a call."""
    from beaconframes.client import plan as plan_call

    with open_explorer(values, sends_requests=False) as explorer:
        load_plan = plan_call(function, **arguments, explorer=explorer)
    derived = {"seconds": load_plan.seconds, "month_share": load_plan.month_share}
    print_object(asdict(load_plan) | derived, load_plan)


plan = LoaderGroup(
    name="plan",
    build=build_command,
    others={"report": ("A report on validators.", build_report)},
    help="""Estimate the number of requests and the duration of a load.

    LOADER and its options are those of load. No rows are loaded. plan report has the options of
    report, and adds up what a report loads.
    """,
)
