"""``beaconframes dictionary``: the columns of every loader."""

from __future__ import annotations

import click

from beaconframes.cli.from_signature import AsJson, command


@command()
def dictionary(name: str | None = None, *, as_json: AsJson = False) -> None:
    """Print the columns of a loader, or the loaders with a column.

    NAME is a loader such as income-history, or v2.rewards for V2; a table of a dataset; or a
    column such as pubkey. Without NAME, all loaders are listed.
    """
    from beaconframes.cli.rendering import print_json
    from beaconframes.config import settings
    from beaconframes.dictionary import ENDPOINTS_BY_NAME, describe

    with settings(frame="polars"):
        described = describe(name)
    if as_json:
        print_json({"loader": name, "rows": described.to_dicts()})
        return
    width = max(map(len, described["loader"])) + 2 if "loader" in described.columns else 0
    for row in described.iter_rows(named=True):
        if name is None:
            click.echo(f"{row['loader']:<{width}}{row['rows']}")
            continue
        mark = "*" if row["key"] else " "
        subject = f"{row['loader']:<{width}}" if width else f"{row['column']:<44}"
        click.echo(f"{mark} {subject}{row['type']:<20}{row['meaning']}")
    endpoint_name = (name or "").replace("-", "_").replace("load_", "", 1)
    endpoint = ENDPOINTS_BY_NAME.get(endpoint_name)
    if endpoint is not None and endpoint.table.keeps_every_field:
        click.echo("  The columns are not documented: each field of the service is a column.")
