"""The groups of validators that a report compares, as the user gives them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.client.plan import PlanningExplorer
from beaconframes.endpoint.identifiers import normalize_validator, normalize_validators
from beaconframes.errors import UsageError
from beaconframes.frames import list_column_names, to_polars
from beaconframes.reports.formats import show_quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.reports.input_frames import Inputs

KEYS = {"validator_index", "pubkey"}
"""Columns that identify a validator."""


def read_groups(groups: Any) -> pl.DataFrame | None:
    """Return ``validator_index``, ``pubkey`` and ``group`` of a dictionary or of a frame."""
    if groups is None:
        return None
    if isinstance(groups, Mapping):
        rows = [
            (index, str(name))
            for name, members in groups.items()
            for index in _list_members(name, members)
        ]
        table = pl.DataFrame(rows, ["validator_index", "group"], orient="row")
    elif "group" in (names := list_column_names(groups)) and not KEYS.isdisjoint(names):
        table = to_polars(groups).drop_nulls("group")
    else:
        raise UsageError(
            f"groups is {type(groups).__name__}",
            hint='Pass a dictionary, such as {"A": range(10)}, or a frame with the columns '
            "validator_index or pubkey, and group.",
        )
    schema = {"validator_index": pl.Int64, "pubkey": pl.String, "group": pl.String}
    table = table.select(
        (pl.col(name) if name in table.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in schema.items()
    )
    table = table.filter(pl.any_horizontal(pl.col(*KEYS).is_not_null()))
    if table.is_empty():
        raise UsageError("groups has no validators", hint="Omit groups to compare none.")
    return _check_groups(table, ["validator_index", "pubkey"])


def check_labels(groups: Any) -> None:
    """Raise `UsageError` for validators without a group, which a report of groups leaves out."""
    if isinstance(groups, Mapping):
        return
    table = to_polars(groups)
    keys = table.filter(pl.col("group").is_null()).select(
        sorted(KEYS & set(table.columns), reverse=True)
    )
    found = keys.filter(pl.any_horizontal(pl.all().is_not_null()))
    if found.height:
        validator = next(key for key in found.row(0) if key is not None)
        raise UsageError(
            f"groups has {show_quantity(found.height, 'validator')} without a group, such as "
            f"{validator}",
            hint="Name their groups, or pass all validators as the first argument.",
        )


def _check_groups(table: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """Return each row once; a validator in several groups is an error."""
    table = table.unique(maintain_order=True)
    twice = table.filter(pl.struct(key).is_duplicated())
    if twice.height:
        validator = next(one for one in twice.row(0) if one is not None)
        raise UsageError(
            f"validator {validator} is in several groups",
            hint="Each validator belongs to one group at most.",
        )
    return table


def find_indices(labels: pl.DataFrame | None, table: pl.DataFrame | None) -> pl.DataFrame | None:
    """Return ``validator_index`` and ``group`` of labels, some of which have public keys only."""
    if labels is None:
        return None
    found = labels.select("validator_index", "group")
    if table is not None and labels["validator_index"].null_count():
        known = table.select("pubkey", pl.col("validator_index").alias("known"))
        key = pl.lit("0x") + pl.col("pubkey").str.to_lowercase().str.strip_prefix("0x")
        joined = labels.with_columns(pubkey=key).join(
            known, on="pubkey", how="left", maintain_order="left"
        )
        found = joined.select(pl.coalesce("validator_index", "known"), "group")
    return _check_groups(found.drop_nulls(), ["validator_index"])


def check_members(labels: pl.DataFrame | None, inputs: Inputs, validators: Any) -> None:
    """Raise `UsageError` for a group of which the report has no validator.

    Requested validators that the source does not have are stated by the report. A plan does not
    know the indices of public keys.
    """
    if labels is None or inputs.groups is None or isinstance(inputs.explorer, PlanningExplorer):
        return
    known = inputs.groups.filter(pl.col("validator_index").is_in(inputs.indices))
    rest = labels.filter(~pl.col("group").is_in(known["group"].implode()))
    if rest.is_empty():
        return
    requested = set(normalize_validators(validators))
    keys = rest.unpivot([*KEYS], index="group").drop_nulls()
    stated = {group for group, _, key in keys.rows() if normalize_validator(key) in requested}
    for group in rest["group"]:
        if group not in stated:
            raise UsageError(
                f"group {group!r} has no validator of this report",
                hint="Add its validators to the first argument, or leave out the group.",
            )


def _list_members(name: object, members: Any) -> Sequence[int]:
    items = [members] if isinstance(members, int) else members
    with suppress(TypeError, ValueError):
        indices = [int(item) for item in items]
        if indices and indices == [float(item) for item in items]:
            return indices
    raise UsageError(f"group {name!r} is {members!r}", hint="Pass the indices of its validators.")
