"""Blocks: one row per slot, two where a twin was orphaned, with everything a block carries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from beaconframes.simulator import tables
from beaconframes.simulator.duties import FATES, NOBODY, ORPHANED, PROPOSED
from beaconframes.simulator.payload import Payloads
from beaconframes.simulator.texts import cut, digest, hexes, where

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from beaconframes.calendar import Chain
    from beaconframes.dataset import Writer
    from beaconframes.simulator.epoch import Epoch
    from beaconframes.simulator.mural import Mural
    from beaconframes.simulator.preset import Bools, Ints

_ROWS = 8192  # of a chunk
_WORDS = pl.Series(FATES)
_HEX = {  # drawn at random: bytes
    "state_root": 32,
    "randao_reveal": 96,
    "signature": 96,
    "sync_aggregate_signature": 96,
}
_COUNTS = (
    "attestations_count",
    "attester_slashings_count",
    "proposer_slashings_count",
    "deposits_count",
    "withdrawals_count",
    "voluntary_exits_count",
)


class Blocks:
    """Collects the slots of epochs, and hands on rows for the block table and the wall."""

    def __init__(
        self,
        writer: Writer,
        chain: Chain,
        mural: Mural,
        *,
        seed: int,
        recipients: Sequence[str],
        deposits: int,
        first_number: int,
        counted_from: int,
    ) -> None:
        """Take each validator's fee recipient, the deposits so far and the execution block.

        Blocks of the epochs *counted_from* and later wait for the votes for them.
        """
        self._writer, self._chain, self._mural, self._seed = writer, chain, mural, seed
        self._rng = np.random.default_rng([seed, 5])
        self._payloads = Payloads(seed, recipients, first_number)
        self._parts: list[dict[str, Ints]] = []
        self._parent = digest(seed, "genesis")
        self._deposits = deposits
        self._counted_from = counted_from

    def add(self, epoch: Epoch) -> None:
        """Take an epoch in."""
        size = self._chain.slots_per_epoch
        if epoch.number == self._counted_from:
            self.flush()
        columns: dict[str, Any] = {
            "slot": epoch.number * size + np.arange(size),
            "fate": epoch.slots.fates,
            "proposer": epoch.slots.proposers,
            "bits": np.packbits(epoch.signed, axis=1, bitorder="little"),
            "signed": epoch.signed.sum(axis=1),
            "attestations_count": epoch.attestations,
            "withdrawals_count": epoch.withdrawals.counts(size),
            "deposits_count": _tally([slot for slot, *_ in epoch.deposits], size),
            "voluntary_exits_count": _tally([slot for slot, _ in epoch.exits], size),
        }
        for kind in ("attester", "proposer"):
            columns[f"{kind}_slashings_count"] = _tally(
                [s.slot for s in epoch.slashings if s.kind == kind], size
            )
        if twins := [s.offence for s in epoch.slashings if s.kind == "proposer"]:
            # A double proposal: the same slot and proposer, another block, orphaned.
            order = np.sort(np.concatenate([np.arange(size), twins]))
            columns = {name: values[order] for name, values in columns.items()}
            columns["fate"][np.flatnonzero(np.diff(order, prepend=-1) == 0)] = ORPHANED
        self._parts.append(columns)
        if epoch.number < self._counted_from and len(self._parts) * size >= _ROWS:
            self.flush()

    def flush(self, votes: Mapping[int, int] | None = None) -> None:
        """Hand on what is there, with the *votes* for canonical blocks by their slot."""
        if not self._parts:
            return
        held = {
            name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]
        }
        self._parts.clear()
        rows = self._rows(held)
        if votes is not None:
            slots = zip(held["slot"].tolist(), _WORDS[held["fate"]], strict=True)
            rows["votes"] = [
                votes.get(slot, 0) if fate == "proposed" else 0 if fate == "orphaned" else None
                for slot, fate in slots
            ]
        blocks = tables.frame("blocks", rows, chain=self._chain)
        self._writer.add("blocks", blocks.sort("slot", "block_root", nulls_last=True))
        paint = self._mural.taken()
        self._writer.add("graffiti_wall", tables.frame("graffiti_wall", paint, chain=self._chain))

    def _rows(self, held: dict[str, Ints]) -> dict[str, Any]:
        fate, slot, proposer = held["fate"], held["slot"], held["proposer"]
        block: Bools = (fate == PROPOSED) | (fate == ORPHANED)
        real = block & (proposer != NOBODY)  # the genesis block is an empty one
        roots = hexes(self._rng, len(slot), 32)
        rows: dict[str, Any] = {
            "slot": slot,
            "epoch": slot // self._chain.slots_per_epoch,
            "status": _WORDS[fate],
            "proposer_index": where(proposer != NOBODY, proposer.tolist()),
            "block_root": where(block, roots),
            "parent_root": where(block, self._parents(held, roots)),
        }
        for name, size in _HEX.items():
            rows[name] = where(real, hexes(self._rng, len(slot), size))
        rows |= self._deposit_votes(held, real)
        bits = held["bits"].tobytes().hex()
        width = 2 * held["bits"].shape[1]
        rows["sync_aggregate_bits"] = where(real, cut(bits, width))
        seats = self._chain.sync_committee_size
        rows["sync_aggregate_participation"] = np.where(real, held["signed"] / seats, 0.0)
        # A twin repeats the content; a slot that has no block has none.
        rows |= {name: np.where(real, held[name], 0) for name in _COUNTS}
        rows |= self._graffiti(held, real)
        rows |= self._payloads.rows(self._rng, held, real, self._chain)
        return rows

    def _parents(self, held: dict[str, Ints], roots: list[str]) -> list[str]:
        """Return the last canonical root before each slot; a twin's parent is its sibling's."""
        parents: list[str] = []
        latest, before = self._parent, -1
        for slot, code, root in zip(
            held["slot"].tolist(), held["fate"].tolist(), roots, strict=True
        ):
            parents.append(parents[-1] if slot == before else latest)
            before = slot
            if code == PROPOSED:
                latest = root
        self._parent = latest
        return parents

    def _deposit_votes(self, held: dict[str, Ints], real: Bools) -> dict[str, Any]:
        """Return what blocks say of the deposit contract: constant for two hours, then anew."""
        per = 64 * self._chain.slots_per_epoch
        terms = [f"{slot // per}" for slot in held["slot"].tolist()]
        known = {term: digest(self._seed, f"deposits {term}") for term in sorted(set(terms))}
        canonical = real & (held["fate"] == PROPOSED)
        count = self._deposits + np.cumsum(np.where(canonical, held["deposits_count"], 0))
        self._deposits = int(count[-1])
        return {
            "eth1_data_block_hash": where(real, [known[term] for term in terms]),
            "eth1_data_deposit_root": where(real, ["0x" + known[term][:1:-1] for term in terms]),
            "eth1_data_deposit_count": np.where(real, count, 0),
        }

    def _graffiti(self, held: dict[str, Ints], real: Bools) -> dict[str, Any]:
        fate, slot, proposer = held["fate"], held["slot"], held["proposer"]
        # Orphaned blocks never paint, so that it does not matter whether a reader counts them.
        paints = real & (fate == PROPOSED)
        texts = self._mural.write(slot, proposer, paints)
        padded = ["0x" + text.encode().ljust(32, b"\0").hex() for text in texts]
        return {
            "graffiti": where(real, padded),
            "graffiti_text": [t if r else "" for t, r in zip(texts, real.tolist(), strict=True)],
        }


def _tally(slots: list[int], size: int) -> Ints:
    return np.bincount(np.array(slots, np.int64), minlength=size)
