"""The activity epochs of validators: requested only if rows are missing, and stored."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Protocol

import polars as pl

from beaconframes.active_periods import FAR
from beaconframes.cache.local_store import CONFIRMATION_SECONDS
from beaconframes.cache.pubkey_index import resolve_pubkeys
from beaconframes.dataset import Grid
from beaconframes.endpoint import UNRESOLVED, Endpoint, Identifiers, Post, Shape
from beaconframes.errors import (
    RequestLimitExceeded,
    ResponseError,
    ServiceError,
    UsageError,
)
from beaconframes.fetch.completeness import drop_unrequested
from beaconframes.fetch.served_range import ServedRange
from beaconframes.fetch.source import Connection
from beaconframes.load_context import LOAD
from beaconframes.schema import Count, Epoch, Flag, Table, Text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from beaconframes.cache.local_store import LocalStore
    from beaconframes.dataset import Covered
    from beaconframes.endpoint import ChainHead
    from beaconframes.fetch.source import Source


class ValidatorEpochs(Table):
    """Activity epochs. One row per validator."""

    validator_index = Count("Validator.", key=True, wire=("validator_index", "validatorindex"))
    status = Text("Status.")
    slashed = Flag("Whether the validator was slashed.")
    activation_epoch = Epoch(
        "Epoch of activation; null until it is set.",
        wire=("activation_epoch", "activationepoch"),
    )
    exit_epoch = Epoch("Epoch of exit; null until it is set.", wire=("exit_epoch", "exitepoch"))
    withdrawable_epoch = Epoch(
        "Epoch from which the whole balance can be withdrawn; null until it is set.",
        wire=("withdrawable_epoch", "withdrawableepoch"),
    )

    is_partial = True


# The same route as load_validators: the package v1 imports this layer, so it is declared again.
VALIDATOR_EPOCHS = Endpoint(
    "validators",
    route="GET /api/v1/validator/{validators}",
    table=ValidatorEpochs,
    parameters=(Identifiers("validators", ValidatorEpochs.validator_index, longest=None),),
    shape=Shape.OBJECT_IF_SINGLE,
    post=Post("/api/v1/validator", arg="validators", field="indicesOrPubkey"),
    absent=UNRESOLVED,
)

TABLE = "validator_epochs"
UNTIL = "known_until"
"""The column of the last epoch for which a stored row holds: a later exit is not in it."""
RECEIVED_AT = "received_at"
"""The column of the time at which a row in memory was received, in seconds."""
# A row without a status is that of a validator that the service does not know.
SCHEMA = pl.Schema({**ValidatorEpochs.schema(), UNTIL: pl.Int64()})
GRID = Grid("validator_index", UNTIL, ("validator_index", UNTIL))


class ExplorerWithStore(Connection, Protocol):
    """An explorer, as far as the activity epochs need it."""

    @property
    def local_store(self) -> LocalStore | None:
        """Return the store, if there is one."""

    @property
    def source(self) -> Source:
        """Return the source of missing rows."""


class ValidatorEpochsCache:
    """The activity epochs of validators, in memory and in the store of an explorer."""

    def __init__(self, explorer: ExplorerWithStore) -> None:
        self._explorer = explorer
        self._rows = pl.DataFrame(schema={**SCHEMA, RECEIVED_AT: pl.Int64})
        self._lock = threading.Lock()

    def known(self, indices: Collection[int], until: int) -> pl.DataFrame:
        """Return the rows that hold up to the epoch *until*, without a request.

        One response shows for ten minutes that a validator is unknown, a second one for ever.
        """
        store = self._explorer.local_store
        now = int(time.time())
        is_recent = pl.col(RECEIVED_AT).is_between(now - CONFIRMATION_SECONDS + 1, now)
        with self._lock:
            rows = self._rows.filter(pl.col("validator_index").is_in(list(indices)))
        rows = rows.filter(pl.col(UNTIL) >= until, pl.col("status").is_not_null() | is_recent)
        rows = rows.drop(RECEIVED_AT)
        missing = set(indices) - set(rows["validator_index"])
        if store is not None and missing:
            subjects = [str(index) for index in missing]
            stored = store.read(TABLE, subjects, ((until, FAR),), SCHEMA)
            epochs = ((0, until),)
            covered = store.coverage(TABLE, subjects, epochs)
            # The rows of a known validator cover one epoch only.
            unknown = [int(subject) for subject, found in covered.items() if found == epochs]
            rows = pl.concat([rows, stored, unknown_rows(unknown)], how="diagonal")
        return rows.unique("validator_index", keep="first")

    def load(
        self, indices: Collection[int], until: int | None, existing: Collection[int] = ()
    ) -> tuple[pl.DataFrame, Collection[int]]:
        """Return the rows that hold up to the epoch *until*, and the validators with an answer.

        Without *until* they hold now. A validator with an answer but without a row is unknown to
        the service. If a response omits a validator that certainly exists, such as one of
        *existing*, the other validators that it omits have no answer either. If the request fails,
        only the stored validators have an answer.
        """
        rows = self.known(indices, FAR if until is None else until)
        answered = set(rows["validator_index"])
        new = set(indices) - answered
        if new and not self._explorer.offline:
            requested = sorted({*new, *sorted(existing)[:1]})
            fetched = self._fetch(requested)
            if fetched is not None:
                omitted = new.union(requested) - set(fetched["validator_index"])
                is_whole = omitted.isdisjoint(existing) and not self._has_known(omitted)
                if is_whole and not fetched.is_empty():
                    fetched = pl.concat([fetched, unknown_rows(omitted)], how="diagonal")
                self._add(fetched, -1 if until is None else until)
                answered |= new if is_whole else new - omitted
                fetched = fetched.filter(pl.col("validator_index").is_in(new))
                rows = pl.concat([rows, fetched], how="diagonal")
        return rows.filter(pl.col("status").is_not_null()), answered

    def resolve(self, pubkeys: Sequence[str]) -> dict[str, int] | None:
        """Return the index of each public key that has one; None if the request failed.

        Raises
        ------
        RequestLimitExceeded
            The limit of the load leaves no request.
        """
        store, limit = self._explorer.local_store, LOAD.get().request_limit
        try:
            return resolve_pubkeys(self._explorer, store, pubkeys, limit)
        except RequestLimitExceeded:
            raise
        except (UsageError, ServiceError, ResponseError):
            return None

    def _fetch(self, indices: list[int]) -> pl.DataFrame | None:
        """Request validators; return their rows, or None if the request failed."""
        chain_head = self._explorer.chain_head
        values = {"validators": indices}
        try:
            frames = [
                drop_unrequested(VALIDATOR_EPOCHS, fetched.calls, fetched.rows)
                for fetched in self._explorer.source.fetch_rows(
                    VALIDATOR_EPOCHS,
                    [values],
                    chain_head,
                    ServedRange(VALIDATOR_EPOCHS, chain_head, values),
                )
            ]
        except RequestLimitExceeded:
            raise
        except (UsageError, ServiceError, ResponseError):
            # The rows of the load must not be discarded because this request fails.
            return None
        rows = pl.concat([ValidatorEpochs.empty(), *frames]).unique("validator_index")
        return rows.with_columns(pl.col("status").fill_null(""))

    def _has_known(self, indices: Collection[int]) -> bool:
        """Return whether an earlier response had any of the validators *indices*."""
        return not self.known(indices, -1).filter(pl.col("status").is_not_null()).is_empty()

    def _add(self, rows: pl.DataFrame, until: int) -> None:
        """Hold received *rows* in memory, and store what they state about final epochs."""
        known_until = max(until, current_epoch(self._explorer.chain_head))
        rows = rows.with_columns(pl.lit(known_until, pl.Int64).alias(UNTIL))
        received = rows.with_columns(pl.lit(int(time.time()), pl.Int64).alias(RECEIVED_AT))
        with self._lock:
            others = self._rows.join(rows, on="validator_index", how="anti")
            self._rows = pl.concat([others, received], how="diagonal")
        store = self._explorer.local_store
        if store is None or (finalized := store.finalized) < 0:
            return
        has_ended = pl.col("withdrawable_epoch") <= finalized
        last = pl.min_horizontal(pl.col(UNTIL), pl.lit(finalized, pl.Int64))
        final = rows.with_columns(
            pl.when(has_ended).then(pl.lit(FAR, pl.Int64)).otherwise(last).alias(UNTIL)
        )
        final = final.filter(pl.col(UNTIL) >= 0)
        covered: Covered = {}
        unknown: Covered = {}
        for index, status, epoch in final.select("validator_index", "status", UNTIL).iter_rows():
            if status is None:
                unknown[str(index)] = ((0, epoch),)
            else:
                covered[str(index)] = ((epoch, epoch),)
        if covered or unknown:
            known = final.filter(pl.col("status").is_not_null())
            store.put(TABLE, known, GRID, covered, finalized, empty=unknown)
            store.compact_small(TABLE)


def unknown_rows(indices: Collection[int]) -> pl.DataFrame:
    """Return the rows of unknown validators, without any other column."""
    return pl.DataFrame({"validator_index": list(indices)}, schema={"validator_index": pl.Int64})


def current_epoch(chain_head: ChainHead) -> int:
    """Return the current epoch if it is known without a request; -1 if it is not.

    The service may lag by some epochs: an exit is set at least five epochs before it happens.
    """
    if chain_head.fixed is not None:
        return chain_head.fixed.epoch
    return chain_head.chain.at("epoch", chain_head.now()) if chain_head.is_live else -1
