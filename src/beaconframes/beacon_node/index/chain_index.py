"""The dataset of an index: created for one chain, extended by epochs, with tables of the head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.beacon_node.index.coverage import WHOLE_CHAIN, find_epochs, find_tasks, find_units
from beaconframes.beacon_node.index.derived_tables import write_derived_tables
from beaconframes.beacon_node.index.epoch_builder import OPTIMISTIC
from beaconframes.beacon_node.index.verdicts import LEFT_OUT, compute_coverage
from beaconframes.beacon_node.tables import INDEXED_TABLES
from beaconframes.beacon_node.tables.state import (
    build_latest_state,
    build_validator_queue,
    build_validators,
)
from beaconframes.consensus.spec import is_since
from beaconframes.dataset import Dataset, ledger
from beaconframes.dataset.coverage import MAX_UNIT
from beaconframes.dataset.maintenance import remove_rows
from beaconframes.dataset.merging import FIRST_UNSETTLED, REMARKS
from beaconframes.derive import ChainTables, Coverage
from beaconframes.endpoint import Head
from beaconframes.endpoint.chain_metadata import describe_chain
from beaconframes.errors import DatasetError, UsageError
from beaconframes.intervals import clip_intervals

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from beaconframes.beacon_node.client.api import BeaconApi
    from beaconframes.beacon_node.index.coverage import EpochTask
    from beaconframes.consensus.spec import Spec
    from beaconframes.intervals import Intervals

WHOLE_CHAIN_VALIDATORS = "all"
GENESIS_ROOT = "genesis_validators_root"
POSSIBLE_ORPHANS = "possible_orphans"


class ChainIndex:
    """A dataset of a node's chain, of chosen validators or of all (None)."""

    def __init__(
        self, dataset: Dataset, spec: Spec, validators: Collection[int] | None = None
    ) -> None:
        self.dataset, self.spec, self.chain = dataset, spec, spec.chain
        self.validators = None if validators is None else frozenset(validators)

    @classmethod
    def open(
        cls,
        folder: Path,
        spec: Spec,
        *,
        source: str,
        validators: Collection[int] | None = None,
        has_fixed_validators: bool = True,
        has_execution: bool = False,
    ) -> ChainIndex:
        """Open the index in *folder*, or create it.

        *source* states the node, without credentials. An index is of one chain, and of all
        validators or of chosen ones. With *has_fixed_validators*, these are always the same. With
        *has_execution*, its income has the fees that an execution node states.
        """
        chosen: Any = WHOLE_CHAIN_VALIDATORS if validators is None else "chosen"
        if validators is not None and has_fixed_validators:
            chosen = sorted(validators)
        facts = {
            "service": source,
            "simulated": False,
            "indexed": True,
            "chain": describe_chain(spec.chain),
            GENESIS_ROOT: "0x" + spec.genesis_validators_root.hex(),
            "validators": chosen,
            "execution": has_execution,
        }
        if not ledger.exists(folder):
            start = {"latest_epoch": 0, "latest_slot": 0, "finalized_epoch": 0}
            try:
                return cls(Dataset.create(folder, meta=facts | start), spec, validators)
            except DatasetError:
                # Another process may have created it at the same time.
                if not ledger.exists(folder):
                    raise
        dataset = Dataset.open(folder)
        meta = dataset.meta
        if not meta.get("indexed"):
            raise DatasetError(
                f"{folder} is a dataset that was not indexed from a node",
                hint="Choose another folder",
            )
        if meta.get(GENESIS_ROOT) != facts[GENESIS_ROOT]:
            raise DatasetError(
                f"{folder} has an index of another chain, {meta['chain']['name']}",
                hint="Connect to a node of that chain, or choose another folder",
            )
        if meta.get("validators") != chosen:
            raise UsageError(
                f"{folder} has an index of {_describe(meta.get('validators'))}, not of "
                f"{_describe(chosen)}",
                hint="Give the same validators, or choose another folder",
            )
        if meta.get("execution", False) != has_execution:
            raise UsageError(
                f"{folder} has an index {'without' if has_execution else 'with'} an execution node",
                hint="Choose another folder, or call it as before"
                if has_execution
                else "Pass the address of the execution node: execution=",
            )
        return cls(dataset, spec, validators)

    def find_tasks(
        self,
        tables: Collection[str],
        epochs: Iterable[int],
        validators: Collection[int] | None = None,
        *,
        starts: Mapping[str, int] | None = None,
    ) -> list[EpochTask]:
        """Return the tasks that complete *tables* for some *epochs*; see `coverage.find_tasks`."""
        chosen = self.validators if validators is None else validators
        return find_tasks(self.dataset, self.chain, tables, epochs, chosen, starts)

    def create_tables(self, names: Iterable[str], *, chosen: bool) -> bool:
        """Create tables that do not exist, without rows, and return whether any was created."""
        existing = self.dataset.grids()
        new = [INDEXED_TABLES[name] for name in names if name not in existing]
        if new:
            with self.dataset.writing() as writer:
                for indexed in new:
                    name, rows = indexed.table.table_name, indexed.table.empty()
                    writer.add_covered(name, rows, indexed.grid(chosen=chosen), {})
                    writer.add(name, rows)
        return bool(new)

    def remove_unsettled(self) -> None:
        """Remove the rows of epochs that were not final when they were written, in one commit."""
        if self.dataset.meta.get(FIRST_UNSETTLED) is None:
            return
        with self.dataset.writing() as writer:
            # Another process may have changed the mark before this commit.
            first = writer.meta.get(FIRST_UNSETTLED)
            if first is None:
                return
            for name in self.dataset.grids():
                indexed = INDEXED_TABLES.get(name)
                if indexed is not None and indexed.unit != "period":
                    start = find_units(indexed.unit, first, self.chain)[0]
                    remove_rows(writer, name, None, start, MAX_UNIT)
            writer.set_meta({FIRST_UNSETTLED: None})

    @property
    def optimistic_epochs(self) -> Intervals:
        """Return the epochs whose blocks the execution node had not verified."""
        parts = self.dataset.meta.get(REMARKS, {}).get(OPTIMISTIC, ())
        return tuple((low, high) for low, high in parts)

    def verify_optimistic(self, api: BeaconApi) -> None:
        """Remove the mark of optimistic epochs if their last block is part of a verified chain."""
        epochs = self.optimistic_epochs
        if not epochs or api.optimistic_slot is not None or "blocks" not in self.dataset.tables():
            return
        blocks = self.dataset.scan("blocks").filter(
            pl.col("epoch") == epochs[-1][1], pl.col("status") == "proposed"
        )
        for slot, root in blocks.select("slot", "block_root").sort("slot").tail(1).collect().rows():
            header = api.header(slot)
            if header is not None and header["root"] == root and api.optimistic_slot is None:
                with self.dataset.writing() as writer:
                    remarks = dict(writer.meta.get(REMARKS, {}))
                    # Another process may have removed it.
                    remarks.pop(OPTIMISTIC, None)
                    writer.set_meta({REMARKS: remarks})

    @property
    def possible_orphans(self) -> dict[str, int]:
        """Return the slots of blocks after the last epoch that may be orphaned, by root."""
        found: dict[str, int] = self.dataset.meta.get(POSSIBLE_ORPHANS, {})
        return found

    def note_possible_orphans(self, slots: dict[str, int]) -> None:
        """Replace the slots of blocks that may be orphaned, by root."""
        if slots != self.possible_orphans:
            with self.dataset.writing() as writer:
                writer.set_meta({POSSIBLE_ORPHANS: slots})

    def note_left_out(self, names: list[str]) -> None:
        """Note the tables that the index leaves out because of their size."""
        if self.dataset.meta.get(LEFT_OUT) != names:
            with self.dataset.writing() as writer:
                writer.set_meta({LEFT_OUT: names})

    def update_head(
        self,
        *,
        head: Head,
        last_proposed_slot: int,
        is_syncing: bool,
        validators: pl.DataFrame,
        is_of_all: bool = True,
        pending_deposits: Any = None,
    ) -> None:
        """Replace the tables that describe the head, and the head in the metadata.

        *validators* are those of the head state, in the columns of `read_validators`. If they are
        not all (*is_of_all*), the validators that another process has added stay. Without
        *pending_deposits*, an index since Electra has no validator queue.
        """
        attested = self._find_last_attestations(head.epoch, validators)
        tables = {
            "validators": build_validators(
                self.spec, head.epoch, validators, last_attestations=attested
            ),
            "latest_state": build_latest_state(
                self.spec,
                current_slot=head.slot,
                last_proposed_slot=last_proposed_slot,
                finalized_epoch=head.finalized_epoch,
                is_syncing=is_syncing,
            ),
        }
        is_electra = is_since(self.spec.fork_at(head.epoch), "electra")
        if self.validators is None and (pending_deposits is not None or not is_electra):
            tables["validator_queue"] = build_validator_queue(
                self.spec, head.epoch, validators, pending_deposits
            )
        facts = {
            "latest_epoch": head.epoch,
            "latest_slot": head.slot,
            "finalized_epoch": head.finalized_epoch,
        }
        self.dataset.replace_tables(
            tables, facts, keep={} if is_of_all else {"validators": "validator_index"}
        )

    def derive(self, validators: Collection[int] | None = None) -> None:
        """Write the tables that follow from others; rankings are of *validators*, by default all.

        All means those of the index.
        """
        coverage = self.get_coverage(validators)
        data = ChainTables(self.dataset, self.chain, self.head, coverage)
        write_derived_tables(self.dataset, data)

    def get_coverage(self, validators: Collection[int] | None = None) -> Coverage:
        """Return the epochs of which all rows of *validators* are stored, by default of all."""
        chosen = self.validators if validators is None else frozenset(validators)
        subjects = None if chosen is None else [WHOLE_CHAIN, *map(str, chosen)]
        by_table: dict[str, Intervals] = {}
        for name in self.dataset.grids():
            indexed = INDEXED_TABLES.get(name)
            if indexed is None or indexed.unit == "period":
                continue
            parts = _intersect(self.dataset.coverage(name, subjects).values())
            by_table[name] = find_epochs(indexed.unit, parts, self.chain)
        return Coverage(by_table.get("balance_history", ()), by_table, chosen)

    def coverage(self) -> pl.DataFrame:
        """Return the indexed epochs, one row per epoch, with the status of its income."""
        return compute_coverage(self.dataset, self.chain)

    @property
    def head(self) -> Head:
        """Return the head of the index: the last epoch whose income is known."""
        meta = self.dataset.meta
        return Head(meta["latest_epoch"], meta["finalized_epoch"], meta["latest_slot"])

    def _find_last_attestations(self, epoch: int, validators: pl.DataFrame) -> pl.DataFrame | None:
        """Return the slot of the last attestation of each validator.

        None unless the attestations of the last epochs, up to *epoch*, are stored for all of the
        *validators*: older ones do not show who attests now.
        """
        recent = range(max(epoch - 1, 0), epoch + 1)
        chosen = None if self.validators is None else validators["validator_index"].to_list()
        has_table = "attestations" in self.dataset.tables()
        if not has_table or self.find_tasks(["attestations"], recent, chosen):
            return None
        included = self.dataset.scan("attestations").filter(pl.col("status") == "included")
        slots = included.group_by("validator_index").agg(
            last_attestation_slot=pl.col("attester_slot").max()
        )
        return slots.collect()


def _describe(validators: Any) -> str:
    if validators == WHOLE_CHAIN_VALIDATORS:
        return "all validators"
    if not isinstance(validators, list):
        return "the validators of loads"
    shown = ", ".join(map(str, validators[:5])) + (", ..." if len(validators) > 5 else "")
    return f"{len(validators)} validators ({shown})"


def _intersect(covered: Iterable[Intervals]) -> Intervals:
    result, *others = [*dict.fromkeys(map(tuple, covered))] or [()]
    for intervals in others:
        result = tuple(part for ends in result for part in clip_intervals(intervals, *ends))
    return result
