"""Attestations in the blocks of old epochs, which datasets do not store.

A simulated dataset stores the attestations of the last hundred epochs, as the service does for
validators. Those of older blocks would take more space than all other tables together. They are
drawn again from the seed when they are read.
"""

from __future__ import annotations

import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl

from beaconframes.dataset.hex_columns import decode
from beaconframes.derive.chain_tables import fit_table
from beaconframes.derive.validator_tables import is_active
from beaconframes.simulator.derived.chain_data import ChainData
from beaconframes.simulator.derived.duties import (
    AttestationDuties,
    build_aggregates,
    build_attestations,
)
from beaconframes.simulator.drawn_hex import find_columns
from beaconframes.simulator.duties import draw_attestations
from beaconframes.v1.attestations import Attestations
from beaconframes.v1.slot_attestations import SlotAttestations

if TYPE_CHECKING:
    from beaconframes.dataset import Dataset

log = logging.getLogger("beaconframes.simulator")

TABLES = {
    "attestations",
    "blocks",
    "missed_attestation_events",
    "slot_attestations",
    "validators",
}
"""The tables that attestations are drawn from, beside the seed."""


class OldAttestations:
    """Draws the attestations of old epochs of a simulated dataset again."""

    def __init__(self, dataset: Dataset) -> None:
        """Draw from the seed of *dataset*; a dataset that is not simulated has none."""
        self._data = ChainData(dataset, cast("Any", None))  # it is only read

    @cached_property
    def epochs(self) -> range:
        """Return the epochs whose attestations are not stored."""
        data = self._data
        if not data.meta.get("simulated") or "seed" not in data.meta:
            return range(0)
        if not data.dataset.tables().keys() >= TABLES:
            # An export may have some of the tables only.
            return range(0)
        slot = data.scan(SlotAttestations.table_name).select(pl.col("block_slot").min())
        first_slot = slot.collect().item()
        end = data.head.epoch if first_slot is None else first_slot // data.chain.slots_per_epoch
        return range(data.first, min(end, data.head.finalized_epoch))

    @cached_property
    def duty_epochs(self) -> range:
        """Return the epochs whose attestation duties are not stored."""
        first = self._data.scan(Attestations.table_name).select(pl.col("epoch").min())
        stored = first.collect().item() if self.epochs else None
        return range(self.epochs.start, self.epochs.stop if stored is None else stored)

    def draw(self, epoch: int) -> pl.DataFrame:
        """Return the attestations in the blocks of an epoch, one row per aggregate.

        There are none if they disagree with the blocks: another version simulated the dataset.
        """
        data = self._data
        size = data.chain.slots_per_epoch
        slots = pl.col("block_slot").is_between(epoch * size, (epoch + 1) * size, closed="left")
        # A block includes attestations of its epoch and of the one before.
        drawn = [self._draw_duties(n) for n in (epoch - 1, epoch) if n >= data.first]
        duties = AttestationDuties.concatenate(drawn)
        items = build_aggregates(data, duties, epoch * size).filter(slots)
        columns = find_columns(data.seed, SlotAttestations.table_name)
        rows = fit_table(SlotAttestations, decode(items.lazy(), columns).collect())
        counts = data.blocks.filter(pl.col("epoch") == epoch, pl.col("attestations_count") > 0)
        if dict(rows.group_by("block_slot").len().rows()) != dict(
            counts.select("slot", "attestations_count").rows()
        ):
            log.warning(
                "No attestations for epoch %s: another version simulated this dataset. "
                "Simulate it again.",
                epoch,
            )
            return SlotAttestations.empty()
        return rows

    def draw_duties(self, epoch: int) -> pl.DataFrame:
        """Return the attestation duties of an epoch, one row per validator."""
        rows = build_attestations(self._data, self._draw_duties(epoch))
        return rows.select(
            pl.col(name).cast(dtype) for name, dtype in Attestations.schema().items()
        )

    def _draw_duties(self, epoch: int) -> AttestationDuties:
        """Return the attestation duties of a final epoch."""
        data = self._data
        size = data.chain.slots_per_epoch
        active = data.validators.filter(is_active(epoch))["validator_index"].sort().to_numpy()
        missed = data.scan("missed_attestation_events").filter(epoch=epoch).collect()
        slots = data.blocks["slot"].to_numpy() - epoch * size
        has_block = np.zeros(2 * size, np.bool_)
        has_block[slots[(slots >= 0) & (slots < 2 * size)]] = True
        online = ~np.isin(active, missed["validator_index"].to_numpy())
        attestations = draw_attestations(data.seed, epoch, active, online, has_block)
        return AttestationDuties.from_epoch(attestations, epoch * size)
