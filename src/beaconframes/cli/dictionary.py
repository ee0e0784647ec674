"""``beaconframes dictionary``: the columns of every loader."""

from __future__ import annotations

import click

from beaconframes.cli.common_options import JSON_HELP


def endpoint_name_of(loader: str) -> str:
    """Return the name of the endpoint of a loader."""
    return loader.replace("-", "_").replace("load_", "", 1)


@click.command()
@click.argument("loader", required=False)
@click.option("--json", "as_json", is_flag=True, help=JSON_HELP)
def dictionary(loader: str | None, as_json: bool) -> None:
    """Print the columns of LOADER.

    LOADER is a name such as income-history, or v2.rewards for V2. Without LOADER, all loaders are
    listed.
    """
    from beaconframes.cli.rendering import print_json
    from beaconframes.dictionary import ENDPOINTS_BY_NAME, describe

    described = describe(loader)
    if as_json:
        print_json({"loader": loader, "rows": described.to_dicts()})
        return
    width = 0 if loader else max(map(len, described["loader"])) + 2
    for row in described.iter_rows(named=True):
        if loader is None:
            click.echo(f"{row['loader']:<{width}}{row['rows']}")
        else:
            mark = "*" if row["key"] else " "
            click.echo(f"{mark} {row['column']:<44}{row['type']:<20}{row['meaning']}")
    endpoint = ENDPOINTS_BY_NAME.get(endpoint_name_of(loader)) if loader else None
    if endpoint is not None and endpoint.table.keeps_every_field:
        click.echo("  The columns are not documented: each field of the service is a column.")
