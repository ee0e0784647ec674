"""``beaconframes dictionary``: what every loader gives."""

from __future__ import annotations

import click


def loader_name(loader: str) -> str:
    """Return what a loader is described by."""
    return loader.replace("-", "_").replace("load_", "", 1)


@click.command()
@click.argument("loader", required=False)
@click.option("--json", "as_json", is_flag=True, help="Write JSON, for machines.")
def dictionary(loader: str | None, as_json: bool) -> None:
    """Say what LOADER gives, column by column.

    LOADER is a noun such as income-history, or v2.rewards of generation 2. Without one, the loaders
    are listed.
    """
    from beaconframes.cli.showing import write_json
    from beaconframes.dictionary import NAMED, describe

    known = describe(loader)
    if as_json:
        write_json({"loader": loader, "rows": known.to_dicts()})
        return
    width = 0 if loader else max(map(len, known["loader"])) + 2
    for row in known.iter_rows(named=True):
        if loader is None:
            click.echo(f"{row['loader']:<{width}}{row['rows']}")
        else:
            mark = "*" if row["key"] else " "
            click.echo(f"{mark} {row['column']:<44}{row['type']:<20}{row['meaning']}")
    if loader is not None and NAMED[loader_name(loader)].table.keeps_every_field:
        click.echo("  Columns are not published: each field that the service sends becomes one.")
