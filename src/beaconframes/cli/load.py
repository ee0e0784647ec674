"""``beaconframes load``: call a loader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes.cli import loader_options, output
from beaconframes.cli.connection_options import connection_options, open_explorer
from beaconframes.cli.docstrings import describe
from beaconframes.cli.from_signature import command
from beaconframes.cli.loader_options import LoaderGroup

if TYPE_CHECKING:
    import click

    from beaconframes.cli.loader_options import Loader


def build_command(name: str, loader: Loader) -> click.Command:
    """Return the command that calls *loader*."""
    from beaconframes.exports.loader_calls import find_endpoint

    @command(
        *connection_options(),
        name=name,
        text=describe(loader),
        arguments=loader_options.list_arguments(loader),
    )
    def load_rows(
        arguments: dict[str, Any], *, strict: bool = False, chosen: output.Output, **values: Any
    ) -> None:
        """Load rows and write them.

        Parameters
        ----------
        strict
            Write no rows if any requested rows are missing.
        """
        endpoint = find_endpoint(loader)
        if endpoint is not None and not endpoint.table.keeps_every_field:
            # Unknown columns are refused before any request.
            chosen.select(endpoint.table.empty())
        with open_explorer(values) as explorer:
            rows = loader(**arguments, strict=strict or None, explorer=explorer)
            requests = explorer.requests
        chosen.write(rows, {"loader": loader.__name__, "requests": requests})

    return load_rows


load = LoaderGroup(
    name="load",
    build=build_command,
    help="""Load rows and print them, or write them to a file.

    LOADER is the name of a loader without load_: load income-history is load_income_history. A
    time is an epoch, slot or day (negative numbers count back from the latest), a date, a month
    (2026-10) or a time in UTC, or an age such as 30d or 12h.
    """,
)
