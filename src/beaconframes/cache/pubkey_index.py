"""Public keys as indices, once: a validator never gets another index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import polars as pl

from beaconframes.dataset import Grid
from beaconframes.endpoint import UNRESOLVED, Request
from beaconframes.endpoint.cover import runs
from beaconframes.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.cache.local_store import LocalStore
    from beaconframes.client.explorer import Explorer

TABLE = "validator_keys"
SCHEMA = pl.Schema({"pubkey": pl.String, "validator_index": pl.Int64, "once": pl.Int64})
GRID = Grid("pubkey", "once", ("pubkey",))
ONCE = runs([0])
AT_ONCE = 100

Natural = Annotated[int, msgspec.Meta(ge=0)]


class Named(msgspec.Struct):
    """The part of a validator that says who it is, in either spelling, and since when it is one."""

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
    def since(self) -> int | None:
        """Return the epoch since which it is certainly there."""
        if self.activationeligibilityepoch is None:
            return self.activation_eligibility_epoch
        return self.activationeligibilityepoch


def resolve(
    explorer: Explorer, local_store: LocalStore | None, keys: Sequence[str]
) -> dict[str, int]:
    """Return the index of each of the *keys* that somebody has, asking for those not known yet."""
    known = {} if local_store is None else known_of(local_store, keys)
    unknown = [key for key in keys if key not in known]
    if explorer.offline:
        return known
    finalized = -1 if local_store is None else local_store.finalized
    if local_store is not None and unknown and finalized < 0:
        finalized = explorer.chain_head.latest("epoch", finalized=True)
    for start in range(0, len(unknown), AT_ONCE):
        found = ask(explorer, unknown[start : start + AT_ONCE])
        known |= {one.pubkey.lower(): one.index for one in found if one.index is not None}
        # One that has just appeared may disappear again, and its number go to another.
        sure = [one for one in found if one.since is not None and one.since <= finalized]
        if sure and local_store is not None:
            cells = [(one.pubkey.lower(), one.index, 0) for one in sure]
            frame = pl.DataFrame(cells, schema=SCHEMA, orient="row")
            local_store.keep(TABLE, frame, GRID, dict.fromkeys(frame["pubkey"], ONCE), finalized)
    return {key: index for key, index in known.items() if key in set(keys)}


def known_of(local_store: LocalStore, keys: Sequence[str]) -> dict[str, int]:
    """Return the index of those of the *keys* that are in the store."""
    rows = local_store.select(TABLE, keys, ONCE, SCHEMA).rows.collect()
    return dict(rows.select("pubkey", "validator_index").iter_rows())


def ask(explorer: Explorer, keys: Sequence[str]) -> list[Named]:
    """Return who the service says has the *keys*."""
    request = Request(
        "POST",
        "/api/v1/validator",
        body=msgspec.json.encode({"indicesOrPubkey": ",".join(keys)}),
        endpoint="POST /api/v1/validator",
        absent=UNRESOLVED,
    )
    data = explorer.fetch(request)
    try:
        found = msgspec.json.decode(data, type=Named | list[Named], strict=False)
    except msgspec.MsgspecError as error:
        raise ProtocolError(
            f"the validators make no sense ({error})", endpoint=request.endpoint
        ) from None
    return found if isinstance(found, list) else [found]
