"""Lookup of validators for other loaders: indices of public keys, and the key of validator 0."""

from __future__ import annotations

import polars as pl

from beaconframes.client import Explorer, Frame, Subjects, load
from beaconframes.endpoint.identifiers import normalize_validators
from beaconframes.v1.validators import VALIDATORS


def find_indices(
    validators: Subjects,
    *,
    explorer: Explorer | None,
    strict: bool | None,
    max_requests: int | None,
) -> list[int]:
    """Return the indices of *validators*; 100 public keys take one request.

    Public keys without a validator are left out, and reported as `MissingRows`.
    """
    identifiers = normalize_validators(validators)
    keys = [item for item in identifiers if item.startswith("0x")]
    indices: dict[str, int] = {}
    if keys:
        rows = lookup(keys, explorer=explorer, strict=strict, max_requests=max_requests)
        indices = dict(zip(rows["pubkey"], rows["validator_index"], strict=True))
    resolved = (indices.get(item) if item.startswith("0x") else int(item) for item in identifiers)
    return [index for index in resolved if index is not None]


def null_placeholder_indices(
    rows: Frame, *, explorer: Explorer | None, strict: bool | None, max_requests: int | None
) -> Frame:
    """Return *rows* with null for each index 0 whose public key is not that of validator 0.

    The key of validator 0 takes one request, sent only when *rows* contain an index 0.
    """
    # A twentieth of the time of a first load, which few loads need.
    import narwhals.stable.v2 as nw

    frame = nw.from_native(rows)
    index, pubkey = nw.col("validator_index"), nw.col("pubkey")
    if frame.lazy().filter(index == 0).head(1).collect().is_empty():
        return rows
    first = lookup(0, explorer=explorer, strict=strict, max_requests=max_requests)
    is_real = (index != 0) | pubkey.is_in(first["pubkey"].to_list())
    result: Frame = frame.with_columns(
        nw.when(is_real).then(index).alias("validator_index")
    ).to_native()
    return result


def lookup(
    validators: Subjects,
    *,
    explorer: Explorer | None,
    strict: bool | None,
    max_requests: int | None,
) -> pl.DataFrame:
    """Return the rows of `load_validators`, always as a polars DataFrame."""
    rows = load(
        VALIDATORS,
        {"validators": validators},
        explorer=explorer,
        strict=strict,
        frame="polars",
        max_requests=max_requests,
    )
    assert isinstance(rows, pl.DataFrame)
    return rows
