"""The records in responses of the Beacon API, beside blocks and validators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from beaconframes.beacon_node.client.signed_block import Checkpoint, Header, Index, Root, Signed

if TYPE_CHECKING:
    from beaconframes.consensus.registry import Ints


class AttestationRewardRows(NamedTuple):
    """Attestation rewards of one epoch in gwei, signed; arrays of equal length."""

    validator_indices: Ints
    source: Ints
    target: Ints
    head: Ints
    inactivity: Ints
    ideal: dict[tuple[str, int], int]
    """What a timely vote earns, by vote and effective balance; empty if the node has none."""


class Event(NamedTuple):
    """An event of the node's event stream."""

    topic: str
    data: dict[str, Any]


class AttestationReward(msgspec.Struct, gc=False):
    """What the votes of a validator earned in an epoch, in gwei."""

    validator_index: int
    source: int
    target: int
    head: int
    inactivity: int | None = None


class IdealReward(msgspec.Struct, gc=False):
    """What timely votes earn with an effective balance, in gwei."""

    effective_balance: int
    source: int
    target: int
    head: int


class AttestationRewards(msgspec.Struct):
    """The rewards of an epoch."""

    total_rewards: list[AttestationReward]
    ideal_rewards: list[IdealReward] = []


class SyncReward(msgspec.Struct, gc=False):
    """What a seat of the sync committee earned by a block, in gwei."""

    validator_index: int
    reward: int


class BlockRewards(msgspec.Struct):
    """What a proposer earned by a block, in gwei."""

    proposer_index: int
    total: int
    attestations: int
    sync_aggregate: int
    proposer_slashings: int
    attester_slashings: int


class BlockHeader(msgspec.Struct):
    """A header with the root of its block."""

    root: Root
    header: Signed[Header]


class Checkpoints(msgspec.Struct):
    """The checkpoints of a state."""

    finalized: Checkpoint


class CommitteeLabel(msgspec.Struct, gc=False):
    """The slot and the number that a client gives to a committee."""

    slot: int
    index: int


class ValidatorDuty(msgspec.Struct, gc=False):
    """A duty of a validator; that of a sync committee has no slot."""

    validator_index: Index
    slot: int = -1


class SyncCommittee(msgspec.Struct):
    """The validators of a sync committee, by seat."""

    validators: list[int]
