"""Attestation duties of the last epochs, what the blocks included of them, and how soon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from beaconframes.simulator.derived.source import digest
from beaconframes.v1.attestation_efficiency import AttestationEfficiency
from beaconframes.v1.attestations import Attestations
from beaconframes.v1.slot_attestations import SlotAttestations

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from beaconframes.calendar import Chain
    from beaconframes.simulator.derived.source import Source
    from beaconframes.simulator.epoch import Epoch
    from beaconframes.simulator.preset import Ints

_EPOCHS = 100  # before the running one
_CELLS = 2**24  # bits that are laid out at once
_WRONG_HEAD, _WRONG_TARGET = 1, 2


class Votes:
    """Keeps who attested what, where that was included, for the last epochs of a run."""

    def __init__(self, chain: Chain, last: int) -> None:
        """Keep the *last* epoch and the hundred before it."""
        self._size, self._from = chain.slots_per_epoch, last - _EPOCHS
        self._parts: list[tuple[NDArray[Any], ...]] = []
        self._canonical: list[Ints] = []

    @property
    def counted_from(self) -> int:
        """Return the first epoch for whose blocks all votes are kept."""
        return max(self._from + 1, 0)

    def add(self, epoch: Epoch) -> None:
        """Take an epoch in."""
        if epoch.number < self._from:
            return
        first, votes = epoch.number * self._size, epoch.votes
        self._canonical.append(first + np.flatnonzero(epoch.slots.canonical))
        if votes is None:
            return
        self._parts.append(
            (
                votes.voters.astype(np.int32),
                first + votes.duty,
                np.where(votes.inclusion < 0, -1, first + votes.inclusion),
                votes.variant.astype(np.int8),
            )
        )

    def counts(self) -> dict[int, int]:
        """Return how many votes each canonical block got that a block included, by its slot."""
        blocks = np.concatenate(self._canonical)
        _, slot, inclusion, variant = (np.concatenate(p) for p in zip(*self._parts, strict=True))
        place = np.searchsorted(blocks, slot, side="right") - 1 - (variant >= _WRONG_HEAD)
        votes = np.bincount(place[(inclusion >= 0) & (place >= 0)], minlength=len(blocks))
        return dict(zip(blocks.tolist(), votes.tolist(), strict=True))

    def take(self) -> Duties:
        """Return what was kept, by validator and slot."""
        voter, slot, inclusion, variant = (
            np.concatenate(p) for p in zip(*self._parts, strict=True)
        )
        self._parts.clear()
        order = np.lexsort((slot, voter))
        return Duties(voter[order], slot[order], inclusion[order], variant[order])


@dataclass(frozen=True)
class Duties:
    """One entry per validator and epoch; ``inclusion`` is a slot, or -1."""

    voter: Ints
    slot: Ints
    inclusion: Ints
    variant: Ints


def write(source: Source, votes: Votes) -> None:
    """Write duties, aggregates and efficiency."""
    duties = votes.take()
    source.add(Attestations, attestations(source, duties))
    source.add(AttestationEfficiency, efficiency(source, duties))
    source.add(SlotAttestations, aggregates(source, duties))


def attestations(source: Source, duties: Duties) -> pl.DataFrame:
    """Return the duties. One row per validator per epoch."""
    missed = pl.col("inclusion_slot").is_null()
    epoch = source.epoch_of("attester_slot")
    return (
        pl.DataFrame(
            {
                "validator_index": duties.voter,
                "attester_slot": duties.slot,
                "inclusion_slot": duties.inclusion,
            }
        )
        .with_columns(
            pl.col("inclusion_slot").replace(-1, None),
            epoch=epoch,
            time=source.chain.time_expr("epoch", epoch),
            committee_index=0,
        )
        .with_columns(status=pl.when(missed).then(pl.lit("missed")).otherwise(pl.lit("included")))
    )


def efficiency(source: Source, duties: Duties) -> pl.DataFrame:
    """Return 2 less the mean of 1 over the delay, 0 for a miss. One row per validator."""
    over = duties.slot < source.head.epoch * source.chain.slots_per_epoch
    voter, delay = duties.voter[over], (duties.inclusion - duties.slot)[over]
    worth = np.divide(1, delay, out=np.zeros(len(delay)), where=delay > 0)
    count = np.bincount(voter)
    validators = np.flatnonzero(count)
    mean = (np.bincount(voter, worth) / np.maximum(count, 1))[validators]
    return pl.DataFrame({"validator_index": validators, "attestation_efficiency": 2 - mean})


def aggregates(source: Source, duties: Duties) -> pl.DataFrame:
    """Return the equal votes of one slot in one block. One row per aggregate."""
    size = source.chain.slots_per_epoch
    oldest = (source.head.epoch - _EPOCHS + 1) * size
    members = pl.DataFrame(
        {
            "validator": duties.voter,
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
    names = [f"{slot} {index}" for slot, index in items.select("block_slot", "block_index").rows()]
    return items.with_columns(
        aggregation_bits(items),
        *_roots(source, items),
        time=source.time_of("block_slot"),
        committee_index=0,
        target_epoch=source.epoch_of("slot"),
        source_epoch=(source.epoch_of("slot") - 1).clip(0),
        signature=pl.Series(source.texts("attestation", names, 96), dtype=pl.String),
    )


def aggregation_bits(items: pl.DataFrame) -> pl.Series:
    """Return the bit lists of aggregates: seat i is bit i, and one bit more ends the list."""
    texts: list[str] = []
    most = int(items["seats"].max() or 0) + 1  # type: ignore[arg-type]
    for part in items.iter_slices(max(1, _CELLS // most)):
        seats = part["seats"].to_numpy()
        bits = np.zeros((part.height, most), np.bool_)
        rows = np.repeat(np.arange(part.height), part["seat"].list.len().to_numpy())
        bits[rows, part["seat"].explode(empty_as_null=False).to_numpy()] = True
        bits[np.arange(part.height), seats] = True
        packed = np.packbits(bits, axis=1, bitorder="little")
        texts += [
            "0x" + row[: size // 8 + 1].tobytes().hex()
            for row, size in zip(packed, seats.tolist(), strict=True)
        ]
    return pl.Series("aggregation_bits", texts, dtype=pl.String)


def _roots(source: Source, items: pl.DataFrame) -> list[pl.Series]:
    """Return the blocks that the votes name: the newest one then, or wrongly the one before it."""
    size = source.chain.slots_per_epoch
    slots = source.blocks["slot"].to_numpy()
    roots = [digest(source.seed, "before", 32), *source.blocks["block_root"].to_list()]

    def newest(until: Ints) -> Ints:
        return np.searchsorted(slots, until, side="right").astype(np.int64)

    slot, variant = items["slot"].to_numpy(), items["variant"].to_numpy()
    epoch = slot // size
    places = {
        "beacon_block_root": np.maximum(newest(slot) - (variant >= _WRONG_HEAD), 0),
        "target_root": np.maximum(newest(epoch * size) - (variant == _WRONG_TARGET), 0),
        "source_root": newest(np.maximum(epoch - 1, 0) * size),
        "block_root": newest(items["block_slot"].to_numpy()),
    }
    return [
        pl.Series(name, [roots[place] for place in found.tolist()], dtype=pl.String)
        for name, found in places.items()
    ]
