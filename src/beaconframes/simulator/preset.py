"""The constants of the simulated chain, which are mostly those of the specification."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from beaconframes.calendar import Chain
from beaconframes.consensus.rewards import RewardConstants

ETH: Final = 10**9  # in gwei
DETAIL_START: Final = datetime(2026, 9, 30, 12, 0, 23, tzinfo=UTC)
TARGET_APR: Final = 0.028  # of the consensus layer; fees come on top


@dataclass(frozen=True, kw_only=True)
class Preset(RewardConstants):
    """The constants of rewards, penalties and delays.

    They are those of the specification (Altair rewards; Electra balances and slashings), except

    - ``base_reward_factor``: 64 on mainnet. Rewards grow with the inverse root of the stake, so
      that a few thousand validators would have implausible yields; the simulated chain uses the
      factor that comes closest to an annual yield of 3 %.
    - ``epochs_per_slashings_vector``: 8192 on mainnet. Four sync periods here, so that a slashed
      validator is withdrawable within a week.
    """

    epochs_per_slashings_vector: int
    min_activation_balance: int = 32 * ETH
    max_effective_balance_compounding: int = 2048 * ETH
    min_slashing_penalty_quotient: int = 4096
    whistleblower_reward_quotient: int = 4096
    proportional_slashing_multiplier: int = 3
    max_seed_lookahead: int = 4
    min_validator_withdrawability_delay: int = 256
    max_activations_per_epoch: int = 4
    max_withdrawals_per_payload: int = 16
    max_pending_partials_per_payload: int = 8
    max_validators_per_withdrawals_sweep: int = 16_384
    finality_distance: int = 2


def choose_preset(chain: Chain, stake: int) -> Preset:
    """Return the preset with which *stake* (gwei) earns about the target yield."""
    epochs_per_year = 365 * chain.epochs_per_day
    # The base rewards of a year per increment are factor x epochs / root of the stake.
    factor = max(1, round(TARGET_APR * math.isqrt(stake) / epochs_per_year))
    return Preset(
        base_reward_factor=factor,
        epochs_per_slashings_vector=4 * chain.epochs_per_sync_period,
    )


def create_chain(history_days: int) -> Chain:
    """Return the default chain: mainnet's clock, detailed epochs from 30 September 2026 on."""
    return Chain("simulated", genesis=DETAIL_START - timedelta(days=history_days))
