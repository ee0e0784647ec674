"""The index of public keys, stored for ever: a validator never gets another index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import polars as pl

from beaconframes.dataset import Grid
from beaconframes.endpoint import UNRESOLVED, Request
from beaconframes.intervals import intervals_of
from beaconframes.schema import Count, Epoch, Hex, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.cache.local_store import LocalStore
    from beaconframes.fetch.source import Connection
    from beaconframes.load_context import RequestLimit

TABLE = "validator_keys"
SCHEMA = pl.Schema({"pubkey": pl.String, "validator_index": pl.Int64, "once": pl.Int64})
GRID = Grid("pubkey", "once", ("pubkey",))
ONLY_UNIT = intervals_of([0])
BATCH_LIMIT = 100
KEYS_PATH = "/api/v1/validator"


class ValidatorKeys(Table):
    """Public keys. One row per validator."""

    pubkey = Hex("Public key.", key=True)
    validator_index = Count(
        "Validator; null until it has an index.",
        wire=("validator_index", "validatorindex"),
        nullable=True,
        optional=True,
    )
    activation_eligibility_epoch = Epoch(
        "Epoch from which the validator certainly exists.",
        wire=("activation_eligibility_epoch", "activationeligibilityepoch"),
        nullable=True,
        optional=True,
    )

    is_partial = True


def resolve_pubkeys(
    connection: Connection,
    store: LocalStore | None,
    pubkeys: Sequence[str],
    limit: RequestLimit | None = None,
) -> dict[str, int]:
    """Return the index of each public key that belongs to a validator; fetch unstored ones.

    The requests count towards the *limit* of the load, unless its estimate has them.
    """
    indices = {} if store is None else stored_indices(store, pubkeys)
    unknown = [key for key in pubkeys if key not in indices]
    if connection.offline:
        return indices
    finalized = -1 if store is None else store.finalized
    if store is not None and unknown and finalized < 0:
        finalized = connection.chain_head.latest("epoch", finalized=True)
    for start in range(0, len(unknown), BATCH_LIMIT):
        if limit is not None:
            limit.count(f"POST {KEYS_PATH}")
        found = fetch_keys(connection, unknown[start : start + BATCH_LIMIT])
        indices |= dict(found.select("pubkey", "validator_index").iter_rows())
        # Until it is final, a reorg may give the index to another validator.
        final = found.filter(pl.col("activation_eligibility_epoch") <= finalized)
        if store is not None and not final.is_empty():
            rows = final.select("pubkey", "validator_index", once=pl.lit(0, pl.Int64))
            store.put(TABLE, rows, GRID, dict.fromkeys(rows["pubkey"], ONLY_UNIT), finalized)
    requested = set(pubkeys)
    return {key: index for key, index in indices.items() if key in requested}


def stored_indices(store: LocalStore, pubkeys: Sequence[str]) -> dict[str, int]:
    """Return the stored indices of *pubkeys*."""
    rows = store.read(TABLE, pubkeys, ONLY_UNIT, SCHEMA)
    return dict(rows.select("pubkey", "validator_index").iter_rows())


def fetch_keys(connection: Connection, pubkeys: Sequence[str]) -> pl.DataFrame:
    """Return the validators with these *pubkeys* that have an index, from the service."""
    request = Request(
        "POST",
        KEYS_PATH,
        body=msgspec.json.encode({"indicesOrPubkey": ",".join(pubkeys)}),
        endpoint=f"POST {KEYS_PATH}",
        absent=UNRESOLVED,
    )
    validators = ValidatorKeys.decode([connection.fetch(request)], connection.chain_head.chain)
    return validators.filter(pl.col("validator_index").is_not_null())
