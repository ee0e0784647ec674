"""The index of public keys, stored for ever: a validator never gets another index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import polars as pl

from beaconframes.dataset import Grid
from beaconframes.endpoint import UNRESOLVED, Request
from beaconframes.errors import ProtocolError
from beaconframes.http.status_errors import NOT_JSON
from beaconframes.intervals import intervals_of

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

Natural = Annotated[int, msgspec.Meta(ge=0)]


class ValidatorKey(msgspec.Struct):
    """The public key, the index and the eligibility epoch of a validator, in either spelling."""

    pubkey: str
    validatorindex: Natural | None = None
    validator_index: Natural | None = None
    activationeligibilityepoch: Natural | None = None
    activation_eligibility_epoch: Natural | None = None

    @property
    def index(self) -> int | None:
        """Return the index."""
        return self.validator_index if self.validatorindex is None else self.validatorindex

    @property
    def eligible_since(self) -> int | None:
        """Return the epoch from which the validator certainly exists."""
        if self.activationeligibilityepoch is None:
            return self.activation_eligibility_epoch
        return self.activationeligibilityepoch


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
        validators = fetch_keys(connection, unknown[start : start + BATCH_LIMIT])
        indices |= {
            validator.pubkey.lower(): validator.index
            for validator in validators
            if validator.index is not None
        }
        # Until it is final, a reorg may give the index to another validator.
        final = [
            validator
            for validator in validators
            if validator.eligible_since is not None and validator.eligible_since <= finalized
        ]
        if final and store is not None:
            cells = [(validator.pubkey.lower(), validator.index, 0) for validator in final]
            frame = pl.DataFrame(cells, schema=SCHEMA, orient="row")
            covered = dict.fromkeys(frame["pubkey"], ONLY_UNIT)
            store.put(TABLE, frame, GRID, covered, finalized)
    requested = set(pubkeys)
    return {key: index for key, index in indices.items() if key in requested}


def stored_indices(store: LocalStore, pubkeys: Sequence[str]) -> dict[str, int]:
    """Return the stored indices of *pubkeys*."""
    rows = store.read(TABLE, pubkeys, ONLY_UNIT, SCHEMA)
    return dict(rows.select("pubkey", "validator_index").iter_rows())


def fetch_keys(connection: Connection, pubkeys: Sequence[str]) -> list[ValidatorKey]:
    """Return the validators with these *pubkeys*, from the service."""
    request = Request(
        "POST",
        KEYS_PATH,
        body=msgspec.json.encode({"indicesOrPubkey": ",".join(pubkeys)}),
        endpoint=f"POST {KEYS_PATH}",
        absent=UNRESOLVED,
    )
    data = connection.fetch(request)
    try:
        validators = msgspec.json.decode(data, type=ValidatorKey | list[ValidatorKey], strict=False)
    except NOT_JSON as error:
        raise ProtocolError(
            f"the response is not a list of validators ({error})", endpoint=request.endpoint
        ) from None
    return validators if isinstance(validators, list) else [validators]
