"""``beaconframes plan``: estimate the requests of a load."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli.common_options import json_option
from beaconframes.cli.connection_options import connection_options, open_explorer
from beaconframes.cli.docstrings import describe
from beaconframes.cli.from_signature import AsJson, command
from beaconframes.cli.loader_group import LoaderGroup
from beaconframes.cli.loader_options import loader_options, pop_arguments
from beaconframes.cli.rendering import print_json, print_lines

if TYPE_CHECKING:
    from beaconframes.cli.loader_options import Loader
    from beaconframes.client.plan import Plan


def build_command(name: str, loader: Loader) -> click.Command:
    """Return the command that plans a call of *loader*."""
    return click.Command(
        name,
        params=[*loader_options(loader), json_option(), *connection_options()],
        help=f"Estimate the requests of this load: {describe(loader)}",
        callback=lambda **values: print_plan(loader, values),
    )


def print_plan(loader: Loader, values: dict[str, Any]) -> None:
    """Print the plan of a load."""
    from beaconframes.client import plan as plan_load

    as_json = values.pop("as_json")
    arguments = pop_arguments(loader, values)
    with open_explorer(values, sends_requests=False) as explorer:
        show_plan(plan_load(loader, **arguments, explorer=explorer), as_json=as_json)


def build_report() -> click.Command:
    """Return the command that plans a report."""
    from beaconframes.cli.report import TEXTS, read_files
    from beaconframes.client import plan as plan_load
    from beaconframes.reports import report

    @command(
        *connection_options(), name="report", like=report, without=["interactive"], texts=TEXTS
    )
    def plan_report(
        arguments: dict[str, Any],
        validators: str | None = None,
        *,
        as_json: AsJson = False,
        **values: Any,
    ) -> None:
        """Estimate the requests of a report, as the command report makes it."""
        read_files(arguments, validators)
        with open_explorer(values, sends_requests=False) as explorer:
            show_plan(plan_load(report, **arguments, explorer=explorer), as_json=as_json)

    return plan_report


def show_plan(load_plan: Plan, *, as_json: bool) -> None:
    """Print a plan."""
    if as_json:
        derived = {"seconds": load_plan.seconds, "month_share": load_plan.month_share}
        print_json(asdict(load_plan) | derived)
    else:
        print_lines(load_plan)


plan = LoaderGroup(
    name="plan",
    build=build_command,
    images=False,
    others={"report": ("A report on validators.", build_report)},
    help="""Estimate the number of requests and the duration of a load.

    LOADER and its options are those of load. No rows are loaded. plan report has the options of
    report, and adds up what a report loads.
    """,
)
