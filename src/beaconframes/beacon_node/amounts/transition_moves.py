"""What the transition into an epoch moves besides attestation rewards, from routes of a node.

Deposits and consolidations that left the queues of Electra, and penalties of slashed validators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from beaconframes.beacon_node.amounts.chosen_validators import (
    BalanceMove,
    ChosenValidators,
    find_applied_deposits,
    find_removed,
    find_upgrade_moves,
)
from beaconframes.beacon_node.amounts.epoch_amounts import Deposit
from beaconframes.beacon_node.client.validator_rows import build_whole_registry
from beaconframes.consensus.registry import (
    Registry,
    compute_total_active_balance,
    decode_hex,
    sum_withdrawals,
)
from beaconframes.consensus.rewards import compute_correlation_penalty
from beaconframes.consensus.spec import is_since

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from beaconframes.beacon_node.amounts.chosen_validators import BlockMoves
    from beaconframes.beacon_node.chain.reader import ChainReader


class TransitionMoves:
    """Reads moves of transitions, for epochs whose rewards do not explain the balances."""

    def __init__(self, reader: ChainReader) -> None:
        """Request queues and validators from *reader*."""
        self.reader, self.spec, self.api = reader, reader.spec, reader.api

    def read(self, epoch: int, blocks: BlockMoves) -> tuple[list[BalanceMove], list[Deposit]]:
        """Return what the transition into *epoch* moves besides attestation rewards.

        Beside the moves of chosen validators, these are all deposits that it applied.
        """
        spec, first, chosen = self.spec, self.spec.first_slot_of(epoch), blocks.after
        moves = self._read_correlation_penalties(epoch - 1, chosen, blocks.before)
        if not is_since(spec.fork_at(epoch), "electra"):
            return moves, []
        if not is_since(spec.fork_at(epoch - 1), "electra"):
            return moves + find_upgrade_moves(blocks, self.api.pending_deposits(first)), []
        request = self.reader.request_state
        entries = find_removed(
            request(first - 1, self.api.pending_deposits), self.api.pending_deposits(first)
        )
        deposits = [
            Deposit(first - 1, index, int(entries[place]["amount"]))
            for place, index in self.find_applied(epoch, chosen, entries, blocks.blocks)
        ]
        moves += [
            BalanceMove("pending_deposit", deposit.validator_index, deposit.amount_gwei)
            for deposit in deposits
            if deposit.validator_index in chosen.positions
        ]
        consolidations = find_removed(
            request(first - 1, self.api.pending_consolidations),
            self.api.pending_consolidations(first),
        )
        pairs = [(int(one["source_index"]), int(one["target_index"])) for one in consolidations]
        pairs = [pair for pair in pairs if chosen.positions.keys() & set(pair)]
        return moves + self._read_consolidations(first - 1, pairs, entries, chosen), deposits

    def find_applied(
        self,
        epoch: int,
        chosen: ChosenValidators,
        entries: Sequence[Mapping[str, Any]],
        blocks: Iterable[Mapping[str, Any]],
    ) -> list[tuple[int, int]]:
        """Return place and validator of the deposits that reached a balance up to *epoch*.

        None of them if there is no deposit for *chosen* validators. *blocks* are the messages of
        the blocks since the first slot of the epoch before.
        """
        pubkeys = sorted({str(entry["pubkey"]) for entry in entries})
        if not chosen.index_of_pubkey.keys() & {decode_hex(pubkey) for pubkey in pubkeys}:
            return []
        start, end = self.spec.first_slot_of(epoch - 1), self.spec.first_slot_of(epoch)
        before = ChosenValidators.from_rows(self.api.validators(start, pubkeys))
        after = ChosenValidators.from_rows(self.api.validators(end, pubkeys))
        return find_applied_deposits(before, after, entries, sum_withdrawals(blocks))

    def _read_consolidations(
        self,
        slot: int,
        pairs: Sequence[tuple[int, int]],
        deposits: Sequence[Mapping[str, Any]],
        chosen: ChosenValidators,
    ) -> list[BalanceMove]:
        """Return the moves of consolidations; *pairs* of source and target, in the order of moves.

        The balance of a source is that after the last slot of the epoch and the *deposits* that
        were applied since. A source has no attestation rewards any more.
        """
        if not pairs:
            return []
        sources = self._read_validators(slot, sorted({pair[0] for pair in pairs}))
        balances = dict(
            zip(sources.indices.tolist(), sources.registry.balances.tolist(), strict=True)
        )
        for deposit in deposits:
            index = sources.index_of_pubkey.get(decode_hex(deposit["pubkey"]))
            if index is not None:
                balances[index] += int(deposit["amount"])
        moves = []
        for source, target in pairs:
            if sources.get("slashed", source):
                continue
            amount = min(balances[source], int(sources.get("effective_balances", source)))
            balances[source] -= amount
            moves += [
                BalanceMove("pending_consolidation", index, signed)
                for index, signed in ((source, -amount), (target, amount))
                if index in chosen.positions
            ]
        return moves

    def _read_correlation_penalties(
        self, epoch: int, after: ChosenValidators, before: ChosenValidators
    ) -> list[BalanceMove]:
        """Return the penalties of validators that are half-way to withdrawal after a slashing.

        They depend on all slashings of the time before, and on all active validators. This is the
        only amount of chosen validators that needs a request for all of them.
        """
        spec, vector = self.spec, self.spec.epochs_per_slashings_vector
        is_due = after.registry.slashed & (
            after.registry.withdrawable_epochs == epoch + vector // 2
        )
        if not is_due.any():
            return []
        last = spec.first_slot_of(epoch + 1) - 1
        registry = build_whole_registry(self.reader.request_state(last, self.api.validators))
        slashed = self._read_slashed_balance(epoch, registry)
        if slashed is None:
            return []
        fork = spec.fork_at(epoch)
        total = compute_total_active_balance(spec, registry, epoch)
        return [
            BalanceMove(
                "slashing_correlation",
                index,
                -compute_correlation_penalty(
                    spec,
                    int(before.get("effective_balances", index)),
                    slashed,
                    total,
                    spec.get_proportional_slashing_multiplier(fork),
                    is_electra=is_since(fork, "electra"),
                ),
            )
            for index in after.indices[is_due].tolist()
        ]

    def _read_validators(self, slot: int, ids: list[int]) -> ChosenValidators:
        rows = self.reader.request_state(slot, lambda slot: self.api.validators(slot, ids))
        return ChosenValidators.from_rows(rows)

    def _read_slashed_balance(self, epoch: int, registry: Registry) -> int | None:
        """Return the balance that was slashed in the time that counts at the end of *epoch*.

        The effective balance at the time of a slashing counts. None if that time is unknown: an
        exit queue that is longer than the time until withdrawal hides it.
        """
        vector = self.spec.epochs_per_slashings_vector
        is_recent = registry.slashed & (registry.withdrawable_epochs > epoch)
        by_epoch: dict[int, list[int]] = {}
        for index in np.flatnonzero(is_recent).tolist():
            by_epoch.setdefault(int(registry.withdrawable_epochs[index]) - vector, []).append(index)
        total = 0
        for slashed_in, ids in by_epoch.items():
            if not 0 <= slashed_in <= epoch:
                return None
            last = self.spec.first_slot_of(slashed_in + 1) - 1
            earlier = max(last - self.spec.slots_per_epoch, 0)
            before = self._read_validators(earlier, ids).registry
            after = self._read_validators(last, ids).registry
            if before.slashed.any() or not after.slashed.all():
                return None
            total += int(after.effective_balances.sum())
        return total
