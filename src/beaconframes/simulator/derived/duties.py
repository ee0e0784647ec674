"""Attestation duties of the last epochs, their inclusion in blocks, and their efficiency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from beaconframes.derive.attestation_efficiency import compute_efficiency, find_rated_epochs
from beaconframes.simulator.drawn_hex import number_before
from beaconframes.v1.attestation_efficiency import AttestationEfficiency
from beaconframes.v1.attestations import Attestations
from beaconframes.v1.slot_attestations import SlotAttestations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from beaconframes.calendar import Chain
    from beaconframes.simulator.derived.chain_data import ChainData
    from beaconframes.simulator.duties import Attestations as DrawnAttestations
    from beaconframes.simulator.epoch import Epoch

    Ints = NDArray[Any]

_MAX_CELLS = 2**24  # size of the arrays of bits
_WRONG_HEAD, _WRONG_TARGET = 1, 2
_MAX_AGGREGATES = 2**16  # in a block


class AttestationCollector:
    """Collects the attestations of the last epochs of a simulation, and their inclusion."""

    def __init__(self, chain: Chain, first: int) -> None:
        """Collect the *first* epoch and all later ones."""
        self._size, self._first = chain.slots_per_epoch, first
        self._parts: list[AttestationDuties] = []
        self._canonical: list[Ints] = []

    @property
    def counted_from(self) -> int:
        """Return the first epoch for whose blocks all votes are collected."""
        return self._first + 1

    def add(self, epoch: Epoch) -> None:
        """Add the attestations of an epoch."""
        if epoch.number >= self._first:
            first = epoch.number * self._size
            self._canonical.append(first + np.flatnonzero(epoch.slots.canonical))
            self._parts.append(AttestationDuties.from_epoch(epoch.attestations, first))

    def count_votes(self) -> dict[int, int]:
        """Return the number of included votes for each canonical block, by its slot."""
        blocks = np.concatenate(self._canonical)
        _, slot, inclusion, variant = AttestationDuties.concatenate(self._parts)
        position = np.searchsorted(blocks, slot, side="right") - 1 - (variant >= _WRONG_HEAD)
        votes = np.bincount(position[(inclusion >= 0) & (position >= 0)], minlength=len(blocks))
        return dict(zip(blocks.tolist(), votes.tolist(), strict=True))

    def take(self) -> AttestationDuties:
        """Return the collected attestations by validator and slot, and clear the collector."""
        duties = AttestationDuties.concatenate(self._parts)
        self._parts.clear()
        order = np.lexsort((duties.slot, duties.validator))
        return AttestationDuties(*(column[order] for column in duties))


class AttestationDuties(NamedTuple):
    """Attestation duties, one entry per validator and epoch; ``inclusion`` is a slot, or -1."""

    validator: Ints
    slot: Ints
    inclusion: Ints
    variant: Ints

    @classmethod
    def from_epoch(cls, drawn: DrawnAttestations, first_slot: int) -> AttestationDuties:
        """Return the duties of the epoch that starts with *first_slot*."""
        inclusion = drawn.inclusion_slots
        return cls(
            drawn.validators.astype(np.int32),
            first_slot + drawn.slots,
            np.where(inclusion < 0, -1, first_slot + inclusion),
            drawn.variants.astype(np.int8),
        )

    @classmethod
    def concatenate(cls, parts: Iterable[AttestationDuties]) -> AttestationDuties:
        """Return the duties of all *parts*."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))


def write_tables(data: ChainData, collector: AttestationCollector) -> None:
    """Write the tables of duties, efficiency and aggregates."""
    duties = collector.take()
    rows = build_attestations(data, duties)
    data.add(Attestations, rows)
    data.add(AttestationEfficiency, rate_attestations(data, rows))
    oldest = data.chain.first_slot_of(collector.counted_from)
    data.add(SlotAttestations, build_aggregates(data, duties, oldest))


def build_attestations(data: ChainData, duties: AttestationDuties) -> pl.DataFrame:
    """Return attestation duties, one row per validator per epoch."""
    missed = pl.col("inclusion_slot").is_null()
    epoch = data.epoch_of("attester_slot")
    return (
        pl.DataFrame(
            {
                "validator_index": duties.validator,
                "attester_slot": duties.slot,
                "inclusion_slot": duties.inclusion,
            }
        )
        .with_columns(
            pl.col("inclusion_slot").replace(-1, None),
            epoch=epoch,
            time=data.chain.time_expr("epoch", epoch),
            committee_index=0,
        )
        .with_columns(status=pl.when(missed).then(pl.lit("missed")).otherwise(pl.lit("included")))
    )


def rate_attestations(data: ChainData, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the efficiency of validators from attestation duties of any epochs."""
    epochs = find_rated_epochs(data.head)
    is_rated = pl.col("epoch").is_between(epochs.start, epochs.stop, closed="left")
    return compute_efficiency([rows.filter(is_rated)])


def build_aggregates(data: ChainData, duties: AttestationDuties, oldest: int) -> pl.DataFrame:
    """Return aggregates, the equal votes of one slot in one block; one row per aggregate.

    Blocks before the *oldest* slot have none.
    """
    members = pl.DataFrame(
        {
            "validator": duties.validator,
            "slot": duties.slot,
            "block_slot": duties.inclusion,
            "variant": duties.variant,
        }
    ).sort("slot", "validator")
    members = members.with_columns(
        seat=pl.int_range(pl.len()).over("slot"), seats=pl.len().over("slot")
    )
    key = ["block_slot", "slot", "variant"]
    items = (
        members.filter(pl.col("block_slot") >= oldest)
        .sort("block_slot", "slot", "variant", "validator", descending=[False, True, False, False])
        .group_by(key, maintain_order=True)
        .agg(pl.col("seats").first(), "seat", validators="validator")
        .with_columns(block_index=pl.int_range(pl.len()).over("block_slot"))
    )
    return items.with_columns(
        encode_aggregation_bits(items),
        *_find_roots(data, items),
        time=data.time_of("block_slot"),
        committee_index=0,
        target_epoch=data.epoch_of("slot"),
        source_epoch=(data.epoch_of("slot") - 1).clip(0),
        # A number, from which readers draw the text.
        signature=pl.col("block_slot") * _MAX_AGGREGATES + pl.col("block_index"),
    )


def encode_aggregation_bits(items: pl.DataFrame) -> pl.Series:
    """Return the bit lists of aggregates: bit i is seat i, and one more bit ends the list."""
    texts: list[str] = []
    width = int(items["seats"].max() or 0) + 1  # type: ignore[arg-type]
    for part in items.iter_slices(max(1, _MAX_CELLS // width)):
        seats = part["seats"].to_numpy()
        bits = np.zeros((part.height, width), np.bool_)
        rows = np.repeat(np.arange(part.height), part["seat"].list.len().to_numpy())
        bits[rows, part["seat"].explode(empty_as_null=False).to_numpy()] = True
        bits[np.arange(part.height), seats] = True
        packed = np.packbits(bits, axis=1, bitorder="little")
        texts += [
            "0x" + row[: size // 8 + 1].tobytes().hex()
            for row, size in zip(packed, seats.tolist(), strict=True)
        ]
    return pl.Series("aggregation_bits", texts, dtype=pl.String)


def _find_roots(data: ChainData, items: pl.DataFrame) -> list[pl.Series]:
    """Return the voted blocks: the newest at the time, or the one before for wrong votes.

    They are numbers, from which readers draw the roots.
    """
    size = data.chain.slots_per_epoch
    slots = data.blocks["slot"].to_numpy()
    numbers = np.array([number_before(data.first * size), *(2 * slots)])

    def find_newest(until: Ints) -> Ints:
        return np.searchsorted(slots, until, side="right").astype(np.int64)

    slot, variant = items["slot"].to_numpy(), items["variant"].to_numpy()
    epoch = slot // size
    positions = {
        "beacon_block_root": np.maximum(find_newest(slot) - (variant >= _WRONG_HEAD), 0),
        "target_root": np.maximum(find_newest(epoch * size) - (variant == _WRONG_TARGET), 0),
        "source_root": find_newest(np.maximum(epoch - 1, 0) * size),
        "block_root": find_newest(items["block_slot"].to_numpy()),
    }
    return [
        pl.Series(name, numbers[indices], dtype=pl.Int64) for name, indices in positions.items()
    ]
