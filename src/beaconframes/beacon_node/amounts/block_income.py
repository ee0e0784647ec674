"""Income inside blocks, from the rewards routes: of proposers and of the sync committee."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from beaconframes.beacon_node.amounts.chosen_validators import BalanceMove
from beaconframes.errors import IntegrityError, NotFound

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

    from beaconframes.beacon_node.amounts.chosen_validators import ChosenValidators
    from beaconframes.beacon_node.chain.reader import ChainReader

SLASHING_PARTS: Final = ("proposer_slashings", "attester_slashings")


def read_income(
    reader: ChainReader,
    epoch: int,
    slots: range,
    validators: ChosenValidators,
    missed: Counter[tuple[int, int]],
) -> dict[int, list[BalanceMove]]:
    """Return the rewards in the blocks of *slots*, by slot, and count *missed* proposals.

    The slots are of an *epoch* and of the one before.
    """
    size = reader.spec.slots_per_epoch
    proposers = {**reader.proposers(epoch - 1), **reader.proposers(epoch)}
    own = [slot for slot in slots if proposers[slot] in validators.positions]
    members = {}
    for slot in slots:
        committee = set(reader.sync_committee(slot // size).tolist())
        members[slot] = sorted(committee & validators.positions.keys())
    income: dict[int, list[BalanceMove]] = {slot: [] for slot in slots}
    blocks = reader.request_all(lambda slot: _read_block(reader, slot, proposers[slot]), own)
    for slot, rewards in blocks.items():
        if rewards is None:
            missed[slot // size, proposers[slot]] += 1
        else:
            income[slot] += rewards
    synced = reader.request_all(
        lambda slot: _read_sync(reader, slot, members[slot]),
        [slot for slot in slots if members[slot] and blocks.get(slot, ()) is not None],
    )
    for slot, rewards in synced.items():
        income[slot] += rewards
    return income


def _read_block(reader: ChainReader, slot: int, proposer: int) -> list[BalanceMove] | None:
    """Return what a proposer earns by a block; None if it missed the slot."""
    try:
        rewards = reader.api.block_rewards(slot)
    except NotFound as error:
        _check_missed(reader, slot, error)
        return None
    if rewards["proposer_index"] != proposer:
        raise IntegrityError(
            f"{reader.api.version()}: epoch {reader.spec.epoch_of(slot)}: the rewards of slot "
            f"{slot} are those of proposer {rewards['proposer_index']}, its duty is that of "
            f"{proposer}",
            hint="The chain may have been reorganized. Try again",
        )
    kinds = {"attestations": "attestation_inclusion", "sync_aggregate": "sync_inclusion"}
    kinds |= {part: f"{part.removesuffix('s')}_inclusion" for part in SLASHING_PARTS}
    return [BalanceMove(kind, proposer, rewards[part]) for part, kind in kinds.items()]


def _read_sync(reader: ChainReader, slot: int, members: Sequence[int]) -> list[BalanceMove]:
    """Return the sync committee rewards of *members*; none if the slot has no block."""
    try:
        rewards = reader.api.sync_rewards(slot, members)
    except NotFound as error:
        _check_missed(reader, slot, error)
        return []
    return [BalanceMove("sync_committee", index, amount) for index, amount in rewards.items()]


def _check_missed(reader: ChainReader, slot: int, error: NotFound) -> None:
    """Raise an error if a slot has a block; *error* is that of the request for its rewards."""
    if reader.header(slot) is not None:
        error.message = f"slot {slot} has a block, but the node no rewards: {error.message}"
        raise error
    reader.check_missed(slot)
