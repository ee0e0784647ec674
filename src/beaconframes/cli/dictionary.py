"""``beaconframes dictionary``: the columns of every loader."""

from __future__ import annotations

from beaconframes.cli.from_signature import command


@command()
def dictionary(name: str | None = None) -> None:
    """Print the columns of a loader, or the loaders with a column.

    NAME is a loader such as income-history, or v2.rewards for V2; a table of a dataset; or a
    column such as pubkey. Without NAME, all loaders are listed.
    """
    from beaconframes.cli.rendering import print_result
    from beaconframes.config import settings
    from beaconframes.dictionary import ENDPOINTS_BY_NAME, describe

    with settings(frame="polars"):
        described = describe(name)
    width = max(map(len, described["loader"])) + 2 if "loader" in described.columns else 0
    lines = []
    for row in described.iter_rows(named=True):
        if name is None:
            lines.append(f"{row['loader']:<{width}}{row['rows']}")
            continue
        mark = "*" if row["key"] else " "
        subject = f"{row['loader']:<{width}}" if width else f"{row['column']:<44}"
        lines.append(f"{mark} {subject}{row['type']:<20}{row['meaning']}")
    endpoint = ENDPOINTS_BY_NAME.get((name or "").replace("-", "_").replace("load_", "", 1))
    if endpoint is not None and endpoint.table.keeps_every_field:
        lines.append("  The columns are not documented: each field of the service is a column.")
    print_result({"loader": name, "rows": described.to_dicts()}, lines)
