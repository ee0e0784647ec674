"""A simulated dataset as of an earlier head: what a service had reported at that slot.

Rows of later slots are hidden. Tables that state the present (validators, epochs, latest state) are
computed from the events until then. Rankings, balances of addresses, queue and pool are derived
again, by the same functions as for the whole dataset.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.consensus.spec import FAR_FUTURE_EPOCH
from beaconframes.dataset import Dataset
from beaconframes.derive.validator_tables import find_statuses
from beaconframes.endpoint.chain_metadata import ChainMetadata
from beaconframes.simulator.derived import RANKINGS, accounts, pool
from beaconframes.simulator.derived.chain_data import ChainData
from beaconframes.simulator.old_attestations import OldAttestations
from beaconframes.simulator.tables import EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from beaconframes.endpoint import Head
    from beaconframes.simulator.head_clock import HeadClock

FINAL_ONLY = {"income_history"} | {name for name, schema in EVENTS.items() if "epoch" in schema}
"""Tables with rows of final epochs only: events of an epoch are complete when it is final."""

EMPTY_VALUES: dict[str, Any] = {"graffiti_text": "", "sync_aggregate_participation": 0.0}
"""Columns of scheduled blocks that are not null, beside the counts."""


class DatasetAt(Dataset):
    """A simulated dataset as of an earlier head; it reads the files of the whole dataset."""

    def __init__(
        self,
        dataset: Dataset,
        head: Head,
        scan: Callable[[str], pl.LazyFrame] | None = None,
    ) -> None:
        """Show *dataset* as of *head*, which must not be after its own head.

        *scan* returns the rows of a table of the whole dataset, for example from memory.
        """
        super().__init__(dataset.path)
        self.scan_all = scan or dataset.scan
        """Returns all rows of a table, also those after the head."""
        self.head = head
        self._whole_meta = dataset.meta
        self.chain = ChainMetadata.parse(self._whole_meta).chain
        self._computed: dict[str, pl.DataFrame] = {}

    @property
    def meta(self) -> dict[str, Any]:
        """Return the metadata of the dataset, with this head."""
        head = self.head
        return {
            **self._whole_meta,
            "latest_epoch": head.epoch,
            "finalized_epoch": head.finalized_epoch,
            "latest_slot": head.slot,
        }

    def scan(
        self, table: str, *, schema: pl.Schema | Mapping[str, Any] | None = None
    ) -> pl.LazyFrame:
        """Return the rows of a table as of the head."""
        if table not in self.tables():
            return super().scan(table, schema=schema)
        if show := SHOWN.get(table):
            return show(self)
        # Without a lock: the functions read tables of the cache, which has one. Two locks, taken in
        # either order, would block for ever. A table that two threads need may be computed twice.
        if table not in self._computed:
            if compute := COMPUTED.get(table):
                self._computed[table] = compute(self)
            elif derive := DERIVED.get(table):
                self._computed |= self._derive(derive)
            else:
                return self._hide_later_rows(table)
        return self._computed[table].lazy()

    def _derive(self, write_tables: Callable[[ChainData], None]) -> dict[str, pl.DataFrame]:
        """Return the tables that a function derives from the rows as of the head."""
        collector = TableCollector()
        write_tables(ChainData(self, collector))  # type: ignore[arg-type]
        return {name: pl.concat(parts) for name, parts in collector.parts.items()}

    def _hide_later_rows(self, table: str) -> pl.LazyFrame:
        """Return the rows of a table that exist at the head."""
        rows, head, chain = self.scan_all(table), self.head, self.chain
        columns = self.schema(table) or pl.Schema()
        if table in FINAL_ONLY:
            return rows.filter(pl.col("epoch") <= head.finalized_epoch)
        for name in ("block_slot", "slot"):
            if name in columns:
                rows = rows.filter(pl.col(name) <= head.slot)
                if "finalized" in columns:
                    final = pl.col("epoch") <= head.finalized_epoch
                    rows = rows.with_columns(finalized=final)
                return rows
        if "epoch" in columns:
            return rows.filter(pl.col("epoch") <= head.epoch)
        if "day" in columns:
            return rows.filter(pl.col("day") < head.finalized_epoch // chain.epochs_per_day)
        if "period" in columns:
            return rows.filter(pl.col("period") <= head.epoch // chain.epochs_per_sync_period + 1)
        return rows


class TableCollector:
    """Collects tables in memory, with the interface of a dataset's writer."""

    def __init__(self) -> None:
        self.parts: dict[str, list[pl.DataFrame]] = {}

    def add(self, name: str, rows: pl.DataFrame) -> None:
        """Add rows of a table."""
        self.parts.setdefault(name, []).append(rows)


def show_blocks(data: DatasetAt) -> pl.LazyFrame:
    """Return the blocks, and the rest of the running epoch as scheduled slots."""
    size, slot = data.chain.slots_per_epoch, data.head.slot
    rows = data.scan_all("blocks").filter(pl.col("slot") < (data.head.epoch + 1) * size)
    is_later = pl.col("slot") > slot
    later = rows.filter(is_later).unique("slot", keep="first", maintain_order=True)
    known = {"slot", "epoch", "time", "proposer_index"}
    columns = [
        pl.col(name) if name in known else pl.lit(find_empty_value(name)).cast(dtype).alias(name)
        for name, dtype in later.collect_schema().items()
    ]
    blocks = pl.concat([rows.filter(~is_later), later.select(columns)])
    return count_recent_votes(data, blocks)


def count_recent_votes(data: DatasetAt, blocks: pl.LazyFrame) -> pl.LazyFrame:
    """Return *blocks* with the votes for the last ones that blocks up to the head include."""
    first = data.chain.first_slot_of(data.head.epoch - 1)
    votes = (
        data.scan("slot_attestations")
        .filter(pl.col("slot") >= first)
        .group_by(block_root="beacon_block_root")
        .agg(included=pl.col("validators").list.len().sum().cast(pl.Int64))
    )
    is_recent = (pl.col("slot") >= first) & (pl.col("status") == "proposed")
    return (
        blocks.join(votes, "block_root", how="left", maintain_order="left")
        .with_columns(
            votes=pl.when(is_recent).then(pl.col("included").fill_null(0)).otherwise("votes")
        )
        .drop("included")
    )


def find_empty_value(column: str) -> Any:
    """Return the value of a column of blocks for a slot without a block."""
    if column == "status":
        return "scheduled"
    return 0 if column.endswith("_count") else EMPTY_VALUES.get(column)


def show_attestations(data: DatasetAt) -> pl.LazyFrame:
    """Return the attestation duties; a duty that no block includes yet is missed."""
    inclusion = pl.col("inclusion_slot")
    is_included = (inclusion <= data.head.slot).fill_null(value=False)
    return (
        data.scan_all("attestations")
        .filter(pl.col("epoch") <= data.head.epoch)
        .with_columns(
            inclusion_slot=pl.when(is_included).then(inclusion),
            status=pl.when(is_included).then("status").otherwise(pl.lit("missed")),
        )
    )


def compute_epochs(data: DatasetAt) -> pl.DataFrame:
    """Return the epochs; the counts of the running epoch are 0, except those of its slots."""
    epoch = pl.col("epoch")
    is_final = epoch <= data.head.finalized_epoch
    rows = data.scan_all("epochs").filter(epoch <= data.head.epoch).collect()
    statuses = data.scan("blocks").filter(epoch == data.head.epoch).select("status").collect()
    values: dict[str, Any] = {"global_participation_rate": 0.0, "voted_ether_gwei": 0}
    values |= {name: 0 for name in rows.columns if name.endswith("_count")}
    del values["validators_count"]
    for status in ("proposed", "missed", "orphaned", "scheduled"):
        values[f"{status}_blocks"] = int((statuses["status"] == status).sum())
    is_running = epoch == data.head.epoch
    return rows.with_columns(finalized=is_final, rewards_exported=is_final).with_columns(
        pl.when(is_running).then(pl.lit(value).cast(rows.schema[name])).otherwise(name).alias(name)
        for name, value in values.items()
    )


def compute_latest_state(data: DatasetAt) -> pl.DataFrame:
    """Return the latest state, one row."""
    head, slot = data.head, pl.col("slot")
    rows = data.scan_all("latest_state").collect()
    blocks = data.scan_all("blocks").filter(slot <= head.slot, pl.col("status") == "proposed")
    values = {
        "current_slot": head.slot,
        "last_proposed_slot": blocks.select(slot.max()).collect().item(),
        "current_epoch": head.epoch,
        "current_finalized_epoch": head.finalized_epoch,
        "finality_delay": head.epoch - head.finalized_epoch,
    }
    return rows.with_columns(
        *(pl.lit(value).cast(rows.schema[name]).alias(name) for name, value in values.items()),
        time=data.chain.time_expr("slot", pl.lit(head.slot)).cast(rows.schema["time"]),
    )


def compute_validators(data: DatasetAt) -> pl.DataFrame:
    """Return the validators after the first slot of the running epoch."""
    index, head = "validator_index", data.head

    def find_later(table: str) -> pl.DataFrame:
        return data.scan_all(table).filter(pl.col("slot") > head.slot).collect()

    balances = (
        data.scan_all("balance_history")
        .filter(epoch=head.epoch)
        .select(index, "balance_gwei", "effective_balance_gwei")
        .collect()
    )
    slashings, exits = find_later("slashing_events"), find_later("exit_events")
    withdrawals = (
        find_later("withdrawal_events").group_by(index).agg(later=pl.col("amount_gwei").sum())
    )
    changes = find_later("bls_changes").select(index, earlier="withdrawal_credentials_0x00")
    switched = pl.col(index).is_in([*find_later("switch_events")[index]])
    credentials = pl.col("withdrawal_credentials")
    keeps_exit = ~pl.col(index).is_in([*slashings[index], *exits[index]])
    activation = pl.col("activation_epoch")
    lookahead = data.meta["preset"]["max_seed_lookahead"]
    whole = data.scan_all("validators").collect()
    rows = (
        whole.drop("balance_gwei", "effective_balance_gwei")
        .join(balances, index, maintain_order="left")
        .join(withdrawals, index, "left", maintain_order="left")
        .join(changes, index, "left", maintain_order="left")
        .join(find_last_attestations(data), index, "left", maintain_order="left")
        .with_columns(
            pl.when(keeps_exit).then(pl.col("exit_epoch", "withdrawable_epoch")),
            slashed=pl.col("slashed") & ~pl.col(index).is_in([*slashings[index]]),
            activation_eligibility_epoch=_null_after("activation_eligibility_epoch", head.epoch),
            # An activation is known as soon as it is scheduled.
            activation_epoch=pl.when(activation - lookahead <= head.epoch).then(activation),
            withdrawal_credentials=pl.when(switched)
            .then("0x01" + credentials.str.slice(4))
            .otherwise(pl.coalesce("earlier", credentials)),
            total_withdrawals_gwei=pl.col("total_withdrawals_gwei") - pl.col("later").fill_null(0),
            last_attestation_slot=pl.coalesce(
                "attested", _null_after("last_attestation_slot", head.slot)
            ),
        )
    )  # fmt: skip

    def read(column: str, missing: int) -> Any:
        return rows[column].fill_null(missing).to_numpy()

    statuses = find_statuses(
        head.epoch,
        slashed=rows["slashed"].to_numpy(),
        eligibility=read("activation_eligibility_epoch", FAR_FUTURE_EPOCH),
        activation=read("activation_epoch", FAR_FUTURE_EPOCH),
        exit_epoch=read("exit_epoch", FAR_FUTURE_EPOCH),
        attested=read("last_attestation_slot", 0),
    )
    return rows.with_columns(status=pl.Series(statuses, dtype=pl.String)).select(whole.columns)


def _null_after(column: str, last: int) -> pl.Expr:
    return pl.when(pl.col(column) <= last).then(column)


def find_last_attestations(data: DatasetAt) -> pl.DataFrame:
    """Return the last attested slot of the validators that have attested so far."""
    rows = data.scan_all("attestations").filter(pl.col("inclusion_slot") <= data.head.slot)
    return rows.group_by("validator_index").agg(attested=pl.col("attester_slot").max()).collect()


def compute_deposits(data: DatasetAt) -> pl.DataFrame:
    """Return the deposits up to the head."""
    latest = data.chain.time_of("slot", data.head.slot)
    return data.scan_all("deposits").filter(pl.col("time") <= latest).collect()


def compute_deposit_origin(data: DatasetAt) -> pl.DataFrame:
    """Return the origins of the deposits up to the head; null for keys without a validator."""
    key = ["from_address", "pubkey", "valid_signature"]
    validators = data.scan("validators").select("validator_index")
    is_validator = pl.col("validator_index").is_in(validators.collect().to_series().implode())
    return (
        data.scan_all("deposit_origin")
        .join(data.scan("deposits"), key, how="semi", maintain_order="left")
        .with_columns(validator_index=pl.when(is_validator).then("validator_index"))
        .collect()
    )


SHOWN: Mapping[str, Callable[[DatasetAt], pl.LazyFrame]] = {
    "blocks": show_blocks,
    "attestations": show_attestations,
}
"""Functions that return a large table as of a head, which is not held in memory."""

COMPUTED: Mapping[str, Callable[[DatasetAt], pl.DataFrame]] = {
    "epochs": compute_epochs,
    "latest_state": compute_latest_state,
    "validators": compute_validators,
    "deposits": compute_deposits,
    "deposit_origin": compute_deposit_origin,
}
"""Functions that return a small table as of a head."""

DERIVED: Mapping[str, Callable[[ChainData], None]] = {
    **{name: methodcaller("derive", name) for name in ("attestation_efficiency", *RANKINGS)},
    **dict.fromkeys(("address_balances", "gas_fees", "validator_queue"), accounts.write_tables),
    **dict.fromkeys(("pool_validators", "pool_stats"), pool.write_tables),
}
"""Functions that derive tables from the other tables as of a head."""


@dataclass(frozen=True)
class SimulatedChain:
    """The additions of a simulated chain; a live one has the head of its *clock*."""

    clock: HeadClock | None = None

    def draw_attestations(self, dataset: Dataset) -> OldAttestations:
        """Return the attestations of epochs that *dataset* does not store."""
        return OldAttestations(dataset)

    def show_at(
        self, dataset: Dataset, slot: int, scan: Callable[[str], pl.LazyFrame]
    ) -> DatasetAt:
        """Return *dataset* as of the live head at *slot*; *scan* reads its tables."""
        assert self.clock is not None
        return DatasetAt(dataset, self.clock.head_at(slot), scan)
