"""The rewards routes of a node: what validators earned in an epoch or by a block."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from beaconframes.beacon_node.client.checked_requests import CheckedRequests
from beaconframes.beacon_node.client.records import (
    AttestationReward,
    AttestationRewardRows,
    AttestationRewards,
    BlockRewards,
    SyncReward,
)
from beaconframes.beacon_node.client.session import SLOW
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_REWARD: Final = 10**9
"""Gwei: no reward of one block, and no reward of one epoch's attestation, is higher."""


class RewardsApi(CheckedRequests):
    """Requests of rewards. Only the balances of an epoch show that they are right."""

    def attestation_rewards(self, epoch: int, ids: Sequence[int] | None) -> AttestationRewardRows:
        """Return the attestation rewards of an epoch, sorted by validator.

        *ids* are validators that were active in the epoch, or slashed and not withdrawable; None
        for all. Each must be in the response.
        """
        route = "/eth/v1/beacon/rewards/attestations/{epoch}"
        decoded = AttestationRewards([])
        if ids != []:  # An empty list requests the rewards of all validators.
            body = [] if ids is None else [str(each) for each in ids]
            page = self._fetch(route, {"epoch": epoch}, body=body, timeouts=SLOW)
            decoded = self._decode(route, page.data, AttestationRewards)
        rewards = decoded.total_rewards
        if ids is not None:
            chosen = set(ids)
            rewards = [row for row in rewards if row.validator_index in chosen]
            if missing := sorted(chosen - {row.validator_index for row in rewards}):
                raise self._integrity_error(
                    route,
                    f"epoch {epoch}: validators {shorten(missing)} were requested, and are not "
                    "in the response",
                    "empty-data",
                )
        rewards.sort(key=lambda row: row.validator_index)
        self._check_rewards(route, epoch, rewards)
        indices, source, target, head, inactivity = (
            np.array([getattr(row, name) for row in rewards], np.int64)
            for name in ("validator_index", "source", "target", "head", "inactivity")
        )
        ideal = {
            (vote, row.effective_balance): getattr(row, vote)
            for row in decoded.ideal_rewards
            for vote in ("source", "target", "head")
        }
        return AttestationRewardRows(indices, source, target, head, inactivity, ideal)

    def block_rewards(self, block_id: int | str) -> dict[str, int]:
        """Return the proposer's reward for a block in gwei: its parts and their ``total``."""
        route = "/eth/v1/beacon/rewards/blocks/{block_id}"
        page = self._fetch(route, {"block_id": block_id}, timeouts=SLOW)
        rewards = msgspec.structs.asdict(self._decode(route, page.data, BlockRewards))
        parts = [rewards[name] for name in rewards if name not in {"proposer_index", "total"}]
        if sum(parts) != rewards["total"] or min(parts) < 0:
            raise self._schema_error(
                route, f"block {block_id}: the parts {parts} do not add up to {rewards['total']}"
            )
        return rewards

    def sync_rewards(self, block_id: int | str, ids: Sequence[int] | None = None) -> dict[int, int]:
        """Return the sync committee reward of a block in gwei by validator, the sum of its seats.

        *ids* that are not in the committee have no reward.
        """
        route = "/eth/v1/beacon/rewards/sync_committee/{block_id}"
        body = [] if ids is None else [str(each) for each in ids]
        page = self._fetch(route, {"block_id": block_id}, body=body, timeouts=SLOW)
        chosen = None if ids is None else set(ids)
        rewards: Counter[int] = Counter()
        rows = self._decode(route, page.data, list[SyncReward])
        for row in rows:
            if chosen is None or row.validator_index in chosen:
                rewards[row.validator_index] += row.reward
        if len({row.validator_index for row in rows}) < len(rows):
            self.count_correction("duplicate-sync-rewards")
        for index, reward in rewards.items():
            if abs(reward) > MAX_REWARD:
                raise self._integrity_error(
                    route,
                    f"block {block_id}: the sync committee reward of validator {index} is "
                    f"{reward} gwei, which is not a reward but a balance",
                    "sync-reward-is-balance",
                )
        return dict(rewards)

    def _check_rewards(self, route: str, epoch: int, rewards: list[AttestationReward]) -> None:
        """Raise an error for a row that cannot be right."""
        previous = -1
        for row in rewards:
            problem = quirk = ""
            if row.validator_index == previous:
                problem = "has several rows"
            elif row.inactivity is None:
                problem, quirk = "has no inactivity penalty", "no-inactivity"
            elif row.inactivity > 0:
                problem = f"has a positive inactivity penalty, {row.inactivity} gwei"
                quirk = "positive-inactivity"
            elif max(abs(row.source), abs(row.target), abs(row.head)) > MAX_REWARD:
                problem = "has a reward above 1 ETH"
            if problem:
                raise self._integrity_error(
                    route, f"epoch {epoch}: validator {row.validator_index} {problem}", quirk
                )
            previous = row.validator_index
