"""Tables of attestations: the duties of an epoch, and the aggregates in blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from beaconframes.beacon_node.chain.votes import SlotCommittees
from beaconframes.beacon_node.client.slot_blocks import PROPOSED
from beaconframes.beacon_node.tables.declaration import DUTIES, NodeTable
from beaconframes.beacon_node.tables.frames import build_frame
from beaconframes.v1.attestations import Attestations
from beaconframes.v1.slot_attestations import SlotAttestations

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beaconframes.beacon_node.chain.votes import IncludedVote
    from beaconframes.beacon_node.tables.epoch_data import EpochData
    from beaconframes.consensus.registry import Ints
    from beaconframes.consensus.shuffling import Committees
    from beaconframes.consensus.spec import Spec

_NEVER: Final = 2**63 - 1


def build_attestations(
    spec: Spec, epoch: int, committees: Committees, votes: Iterable[IncludedVote]
) -> pl.DataFrame:
    """Return the attestation duties of *epoch*, one row per validator.

    *votes* are those of the blocks of *epoch* and of the next epoch, the last in which a block can
    include the attestation. Orphaned blocks do not count.
    """
    first = spec.first_slot_of(epoch)
    slots = range(first, first + spec.slots_per_epoch)
    parts = {slot: SlotCommittees.build(committees, slot) for slot in slots}
    inclusion = {slot: np.full(len(part.members), _NEVER) for slot, part in parts.items()}
    canonical = [vote for vote in votes if vote.slot in inclusion and vote.place.status == PROPOSED]
    # From the last block to the first: the first inclusion is written last.
    for vote in sorted(canonical, key=lambda vote: vote.place.slot, reverse=True):
        if vote.bits is None:
            raise ValueError(f"the votes were read without the committees of epoch {epoch}")
        vote.select(inclusion[vote.slot])[vote.bits] = vote.place.slot
    sizes = [len(part.members) for part in parts.values()]
    members = np.concatenate([part.members for part in parts.values()])
    # Written by validator index, the rows need no sort.
    position = np.full(int(members.max(initial=-1)) + 1, -1)
    position[members] = np.arange(len(members))
    validators = np.flatnonzero(position >= 0)
    order = position[validators]
    columns = {
        "attester_slot": np.repeat(np.array(slots), sizes),
        "inclusion_slot": np.concatenate(list(inclusion.values())),
        "committee_index": np.concatenate([part.indices for part in parts.values()]),
    }
    frame = pl.DataFrame({name: values[order] for name, values in columns.items()})
    included = pl.col("inclusion_slot") != _NEVER
    frame = frame.with_columns(
        validator_index=pl.Series(validators),
        epoch=pl.lit(epoch),
        inclusion_slot=pl.when(included).then("inclusion_slot"),
        status=pl.when(included).then(pl.lit("included")).otherwise(pl.lit("missed")),
    )
    return build_frame(Attestations, frame.to_dict(), spec.chain)


def build_slot_attestations(spec: Spec, votes: Sequence[IncludedVote]) -> pl.DataFrame:
    """Return the attestations in blocks, one row per aggregate; unknown validators are null."""
    rows = [_describe(vote) for vote in votes]
    names = [name for name in SlotAttestations.schema().names() if name != "time"]
    columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in names}
    # From arrays, without a Python integer for each validator.
    lists = pl.Series([_find_validators(vote) for vote in votes], dtype=pl.List(pl.Int64))
    is_known = pl.Series([vote.bits is not None for vote in votes], dtype=pl.Boolean)
    if not is_known.all():
        lists = pl.select(pl.when(is_known).then(lists)).to_series()
    columns["validators"] = lists
    return build_frame(SlotAttestations, columns, spec.chain)


def _find_validators(vote: IncludedVote) -> Ints:
    """Return the validators that signed; none if the committees are unknown."""
    if vote.committees is None:
        return np.zeros(0, np.int64)
    validators: Ints = vote.select(vote.committees.members)[vote.bits]
    return validators


def _describe(vote: IncludedVote) -> dict[str, Any]:
    data = vote.attestation.data
    return {
        "block_slot": vote.place.slot,
        "block_root": vote.place.root,
        "block_index": vote.number,
        "slot": data.slot,
        "committee_index": data.index,
        "aggregation_bits": vote.attestation.aggregation_bits,
        "beacon_block_root": data.beacon_block_root,
        "source_epoch": data.source.epoch,
        "source_root": data.source.root,
        "target_epoch": data.target.epoch,
        "target_root": data.target.root,
        "signature": vote.attestation.signature,
    }


def build_chosen_attestations(data: EpochData) -> pl.DataFrame:
    """Return the attestation duties of the chosen validators."""
    committees = data.reader.committees(data.epoch)
    duties = build_attestations(data.spec, data.epoch, committees, data.read_votes(1))
    if data.validators is None:
        return duties
    return duties.filter(pl.col("validator_index").is_in(data.validators))


def build_aggregates(data: EpochData) -> pl.DataFrame:
    """Return the attestations in the blocks of the epoch."""
    return build_slot_attestations(data.spec, data.reader.votes(data.epoch))


TABLES: Final = (
    NodeTable(Attestations, "epoch", DUTIES, build_chosen_attestations),
    # The lists of validators are three quarters of the bytes of an epoch of mainnet.
    NodeTable(SlotAttestations, "block_slot", DUTIES, build_aggregates, is_large=True),
)
