"""The block table: one row per slot, two for a double proposal, with all fields of a block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from beaconframes.derive.epochs import COUNTS
from beaconframes.simulator import drawn_hex, tables
from beaconframes.simulator.drawn_hex import BLOCK_ROOT, number_before
from beaconframes.simulator.duties import NO_PROPOSER, ORPHANED, PROPOSED, SLOT_STATUSES
from beaconframes.simulator.execution_payloads import PayloadBuilder
from beaconframes.simulator.hex_text import hash_text, null_unless, split_hex

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from beaconframes.calendar import Chain
    from beaconframes.consensus.registry import Bools, Ints
    from beaconframes.dataset import Writer
    from beaconframes.simulator.epoch import Epoch
    from beaconframes.simulator.graffiti import GraffitiWriter

_CHUNK_ROWS = 8192
_STATUS_TEXTS = pl.Series(SLOT_STATUSES)
_DRAWN = (
    "state_root",
    "randao_reveal",
    "signature",
    "sync_aggregate_signature",
    "exec_state_root",
    "exec_receipts_root",
    "exec_random",
)
"""Columns of random hex that no other column repeats."""


class BlockWriter:
    """Collects the slots of epochs, and writes rows of the block table and of the wall."""

    def __init__(
        self,
        writer: Writer,
        chain: Chain,
        graffiti: GraffitiWriter,
        *,
        seed: int,
        recipients: Sequence[str],
        deposit_count: int,
        first_slot: int,
        counted_from: int,
    ) -> None:
        """Start at *first_slot*, with *deposit_count* deposits so far.

        *recipients* has the fee recipient of each validator. Blocks of the epochs *counted_from*
        and later are written when their votes have been counted.
        """
        self._writer, self._chain, self._graffiti, self._seed = writer, chain, graffiti, seed
        self._rng = np.random.default_rng([seed, 5])
        self._payloads = PayloadBuilder(seed, recipients, first_slot)
        self._parts: list[dict[str, Ints]] = []
        self._parent = number_before(first_slot)
        self._deposit_count = deposit_count
        self._counted_from = counted_from

    def add(self, epoch: Epoch) -> None:
        """Add the slots of an epoch."""
        size = self._chain.slots_per_epoch
        if epoch.number == self._counted_from:
            self.flush()
        columns: dict[str, Any] = {
            "slot": epoch.number * size + np.arange(size),
            "status": epoch.slots.statuses,
            "proposer": epoch.slots.proposers,
            "bits": np.packbits(epoch.sync_bits, axis=1, bitorder="little"),
            "signed": epoch.sync_bits.sum(axis=1),
            "attestations_count": epoch.included_attestations,
            "withdrawals_count": _count_per_slot(epoch.withdrawals.slots, size),
            "deposits_count": _count_per_slot([slot for slot, *_ in epoch.deposits], size),
            "voluntary_exits_count": _count_per_slot([slot for slot, _ in epoch.exits], size),
        }
        for kind in ("attester", "proposer"):
            columns[f"{kind}_slashings_count"] = _count_per_slot(
                [s.slot for s in epoch.slashings if s.kind == kind], size
            )
        if double_proposals := [s.offence_slot for s in epoch.slashings if s.kind == "proposer"]:
            # The second block of a double proposal has the same slot and proposer; it is orphaned.
            order = np.sort(np.concatenate([np.arange(size), double_proposals]))
            columns = {name: values[order] for name, values in columns.items()}
            columns["status"][np.flatnonzero(np.diff(order, prepend=-1) == 0)] = ORPHANED
        self._parts.append(columns)
        if epoch.number < self._counted_from and len(self._parts) * size >= _CHUNK_ROWS:
            self.flush()

    def flush(self, votes: Mapping[int, int] | None = None) -> None:
        """Write the collected rows, with the *votes* for canonical blocks by slot."""
        if not self._parts:
            return
        slots = {
            name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]
        }
        self._parts.clear()
        rows = self._build_columns(slots)
        if votes is not None:
            statuses = zip(slots["slot"].tolist(), _STATUS_TEXTS[slots["status"]], strict=True)
            rows["votes"] = [
                votes.get(slot, 0) if status == "proposed" else 0 if status == "orphaned" else None
                for slot, status in statuses
            ]
        blocks = tables.build_frame("blocks", rows, chain=self._chain)
        roots = drawn_hex.draw(self._seed, BLOCK_ROOT, blocks["block_root"].fill_null(0).to_list())
        self._writer.add("blocks", blocks.sort("slot", roots, maintain_order=True))
        pixels = self._graffiti.take_pixels().to_dict()
        self._writer.add(
            "graffiti_wall", tables.build_frame("graffiti_wall", pixels, chain=self._chain)
        )

    def _build_columns(self, slots: dict[str, Ints]) -> dict[str, Any]:
        status, slot, proposer = slots["status"], slots["slot"], slots["proposer"]
        has_block: Bools = (status == PROPOSED) | (status == ORPHANED)
        has_content = has_block & (proposer != NO_PROPOSER)  # the genesis block has none
        # The second block of a slot follows the first.
        numbers = 2 * slot + (np.diff(slot, prepend=-1) == 0)
        rows: dict[str, Any] = {
            "slot": slot,
            "epoch": slot // self._chain.slots_per_epoch,
            "status": _STATUS_TEXTS[status],
            "proposer_index": null_unless(proposer != NO_PROPOSER, proposer),
            "block_root": null_unless(has_block, numbers),
            "parent_root": null_unless(has_block, self._find_parents(slots, numbers.tolist())),
            **dict.fromkeys(_DRAWN, null_unless(has_content, numbers)),
        }
        rows |= self._build_eth1_data(slots, has_content)
        bits = slots["bits"].tobytes().hex()
        width = 2 * slots["bits"].shape[1]
        rows["sync_aggregate_bits"] = null_unless(has_content, split_hex(bits, width))
        seats = self._chain.sync_committee_size
        rows["sync_aggregate_participation"] = np.where(has_content, slots["signed"] / seats, 0.0)
        # The second block of a double proposal has the same operations as the first.
        rows |= {name: np.where(has_content, slots[name], 0) for name in COUNTS}
        rows |= self._build_graffiti(slots, has_content)
        rows |= self._payloads.build_columns(self._rng, slots, numbers, has_content, self._chain)
        return rows

    def _find_parents(self, slots: dict[str, Ints], numbers: list[int]) -> list[int]:
        """Return the parent of each block: the last canonical block before its slot."""
        parents: list[int] = []
        latest, previous_slot = self._parent, -1
        for slot, code, number in zip(
            slots["slot"].tolist(), slots["status"].tolist(), numbers, strict=True
        ):
            parents.append(parents[-1] if slot == previous_slot else latest)
            previous_slot = slot
            if code == PROPOSED:
                latest = number
        self._parent = latest
        return parents

    def _build_eth1_data(self, slots: dict[str, Ints], has_content: Bools) -> dict[str, Any]:
        """Return the eth1 data of blocks; hash and root change every two hours."""
        slots_per_voting_period = 64 * self._chain.slots_per_epoch
        periods = [f"{slot // slots_per_voting_period}" for slot in slots["slot"].tolist()]
        hashes = {p: hash_text(self._seed, f"deposits {p}") for p in sorted(set(periods))}
        canonical = has_content & (slots["status"] == PROPOSED)
        count = self._deposit_count + np.cumsum(np.where(canonical, slots["deposits_count"], 0))
        self._deposit_count = int(count[-1])
        return {
            "eth1_data_block_hash": null_unless(has_content, [hashes[p] for p in periods]),
            "eth1_data_deposit_root": null_unless(
                has_content, ["0x" + hashes[p][:1:-1] for p in periods]
            ),
            "eth1_data_deposit_count": np.where(has_content, count, 0),
        }

    def _build_graffiti(self, slots: dict[str, Ints], has_content: Bools) -> dict[str, Any]:
        status, slot, proposer = slots["status"], slots["slot"], slots["proposer"]
        # Orphaned blocks never paint, so the wall does not depend on whether they count.
        may_paint = has_content & (status == PROPOSED)
        texts = self._graffiti.draw_texts(slot, proposer, may_paint)
        padded = ["0x" + text.encode().ljust(32, b"\0").hex() for text in texts]
        return {
            "graffiti": null_unless(has_content, padded),
            "graffiti_text": [
                t if r else "" for t, r in zip(texts, has_content.tolist(), strict=True)
            ],
        }


def _count_per_slot(slots: ArrayLike, size: int) -> Ints:
    return np.bincount(np.array(slots, np.int64), minlength=size)
