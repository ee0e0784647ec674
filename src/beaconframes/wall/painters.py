"""Who paints: single validators, groups of them, or painters with a name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from beaconframes.errors import UsageError
from beaconframes.frames import collect, select_columns

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

    Groups: TypeAlias = Mapping[str, Iterable[int]]
    Names: TypeAlias = Mapping[int, str] | IntoFrame


def add_painters(
    rows: pl.DataFrame, groups: Groups | None, names: Names | None
) -> tuple[pl.DataFrame, list[str]]:
    """Add the painter of each write; return the rows with the columns that identify a painter.

    A painter with a name has no ``validator_index``: the name stands for all of its validators.
    """
    if groups is not None and names is not None:
        raise UsageError("groups and names both say who the painters are", hint="Pass only one.")
    if groups is None and names is None:
        return rows, ["validator_index"]
    members = _read_names(names) if groups is None else _read_groups(groups)
    rows = rows.join(members, on="validator_index", how="left", maintain_order="left")
    if groups is not None:
        return rows, ["group"]
    unnamed = pl.when(pl.col("name").is_null()).then("validator_index")
    return rows.with_columns(validator_index=unnamed), ["name", "validator_index"]


def _read_names(names: Names | None) -> pl.DataFrame:
    """Read names. One row per validator with a name; the service has "" for none."""
    hint = 'Pass names by validator, such as {838: "Ada"}, or bf.load_validators(...).'
    if isinstance(names, Mapping):
        try:
            rows = pl.DataFrame(
                {"validator_index": [*names], "name": [*names.values()]},
                schema={"validator_index": pl.Int64, "name": pl.String},
            )
        except (TypeError, OverflowError):
            raise UsageError(f"names={names!r} are not names", hint=hint) from None
    else:
        columns = ("validator_index", "name")
        rows = collect(select_columns(names, columns, loader="load_validators"))  # type: ignore[arg-type]
    rows = rows.filter(pl.col("name").str.strip_chars() != "").unique()
    if twice := rows.filter(pl.col("validator_index").is_duplicated()).rows():
        raise UsageError(f"validator {twice[0][0]} has more than one name", hint=hint)
    return rows


def _read_groups(groups: Groups) -> pl.DataFrame:
    """Read the groups. One row per validator; no validator is in two groups."""
    hint = 'Pass validators by group name, such as {"ours": range(250)}.'
    try:
        pairs = [(index, name) for name, members in groups.items() for index in members]
        members = pl.DataFrame(
            {"validator_index": [pair[0] for pair in pairs], "group": [pair[1] for pair in pairs]},
            schema={"validator_index": pl.Int64, "group": pl.String},
        )
    except (AttributeError, TypeError, OverflowError):
        raise UsageError(f"groups={groups!r} are not groups", hint=hint) from None
    if twice := members.filter(pl.col("validator_index").is_duplicated()).rows():
        raise UsageError(f"validator {twice[0][0]} is in more than one group", hint=hint)
    return members
