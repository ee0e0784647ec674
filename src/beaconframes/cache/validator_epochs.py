"""The activity epochs of validators: requested only if rows are missing, and stored."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

import polars as pl

from beaconframes.active_periods import FAR
from beaconframes.cache.pubkey_index import resolve_pubkeys
from beaconframes.dataset import Grid
from beaconframes.endpoint import UNRESOLVED, Endpoint, Identifiers, Post, Shape
from beaconframes.endpoint.intervals import intervals_of
from beaconframes.errors import RequestLimitExceeded, ResponseError, ServiceError, UsageError
from beaconframes.fetch.completeness import drop_unrequested
from beaconframes.fetch.served_range import ServedRange
from beaconframes.fetch.source import Connection
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
        self._rows = pl.DataFrame(schema=SCHEMA)
        self._lock = threading.Lock()

    def known(self, indices: Collection[int], until: int) -> pl.DataFrame:
        """Return the rows that hold up to the epoch *until*, without a request."""
        store = self._explorer.local_store
        with self._lock:
            rows = self._rows.filter(pl.col("validator_index").is_in(list(indices)))
        rows = rows.filter(pl.col(UNTIL) >= until)
        unknown = set(indices) - set(rows["validator_index"])
        if store is not None and unknown:
            intervals = intervals_of(range(until, FAR + 1))
            stored = store.select(TABLE, [str(n) for n in unknown], intervals, SCHEMA)
            rows = pl.concat([rows, stored.rows.collect()])
        return rows.unique("validator_index", keep="any")

    def load(
        self, indices: Collection[int], until: int | None, witness: int | None = None
    ) -> tuple[pl.DataFrame, Collection[int]]:
        """Return the rows that hold up to the epoch *until*, and the validators with an answer.

        Without *until* they hold now. A validator with an answer but without a row is unknown to
        the service. That is stored only if the same answers have another validator, such as the
        *witness*, which certainly exists. If the request fails, only the stored validators have an
        answer.
        """
        rows = self.known(indices, FAR if until is None else until)
        answered = set(rows["validator_index"])
        new = set(indices) - answered
        if new and not self._explorer.offline:
            requested = sorted(new if witness is None else {*new, witness})
            fetched = self._fetch(requested, -1 if until is None else until)
            if fetched is not None:
                rows = pl.concat([rows, fetched.filter(pl.col("validator_index").is_in(new))])
                answered |= new
        return rows.filter(pl.col("status").is_not_null()), answered

    def resolve(self, pubkeys: Sequence[str]) -> dict[str, int] | None:
        """Return the index of each public key that has one; None if the request failed."""
        try:
            return resolve_pubkeys(self._explorer, self._explorer.local_store, pubkeys)
        except (UsageError, ServiceError, ResponseError):
            return None

    def _fetch(self, indices: list[int], until: int) -> pl.DataFrame | None:
        """Request validators, and store their rows; None if the request failed."""
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
        rows = rows.with_columns(pl.col("status").fill_null(""))
        if not rows.is_empty():
            unknown = pl.DataFrame({"validator_index": indices}, schema_overrides=SCHEMA)
            unknown = unknown.join(rows, on="validator_index", how="anti")
            rows = pl.concat([rows, unknown], how="diagonal")
        known_until = max(until, current_epoch(chain_head))
        rows = rows.with_columns(pl.lit(known_until, pl.Int64).alias(UNTIL))
        with self._lock:
            others = self._rows.join(rows, on="validator_index", how="anti")
            self._rows = pl.concat([others, rows])
        self._store(rows)
        return rows

    def _store(self, rows: pl.DataFrame) -> None:
        """Store what *rows* state about final epochs."""
        store = self._explorer.local_store
        if store is None or (finalized := store.finalized) < 0:
            return
        has_ended = pl.col("withdrawable_epoch") <= finalized
        last = pl.min_horizontal(pl.col(UNTIL), pl.lit(finalized, pl.Int64))
        final = rows.with_columns(
            pl.when(has_ended).then(pl.lit(FAR, pl.Int64)).otherwise(last).alias(UNTIL)
        )
        final = final.filter(pl.col(UNTIL) >= 0)
        cells = final.select(pl.col("validator_index").cast(pl.String), UNTIL).iter_rows()
        covered: Covered = {subject: ((last, last),) for subject, last in cells}
        if covered:
            store.put(TABLE, final, GRID, covered, finalized)
            store.compact_small(TABLE)


def current_epoch(chain_head: ChainHead) -> int:
    """Return the current epoch if it is known without a request; -1 if it is not.

    The service may lag by some epochs: an exit is set at least five epochs before it happens.
    """
    if chain_head.known is not None:
        return chain_head.known.epoch
    return chain_head.chain.at("epoch", chain_head.now()) if chain_head.is_live else -1
