"""Income of validators by duty."""

from __future__ import annotations

from beaconframes.active_periods import Lifetime
from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import UNRESOLVED, Endpoint, EpochWindow, Finality, Identifiers
from beaconframes.schema import WEEK_OF_EPOCH, Count, Epoch, EpochTime, Gwei, Table, Wei
from beaconframes.time_range import Moment


class IncomeHistory(Table):
    """Income. One row per validator per epoch. Penalties are positive: subtract them."""

    validator_index = Count("Validator.", key=True, wire=("validatorindex", "validator_index"))
    epoch = Epoch("Epoch of the duties.", key=True)
    time = EpochTime("Start of the epoch, UTC.")
    attestation_head_reward_gwei = Gwei(
        "Reward for a timely head vote.",
        wire="income.attestation_head_reward",
        default=0,
        minimum=0,
    )
    attestation_source_reward_gwei = Gwei(
        "Reward for a timely source vote.",
        wire="income.attestation_source_reward",
        default=0,
        minimum=0,
    )
    attestation_source_penalty_gwei = Gwei(
        "Penalty for a missed or late source vote.",
        wire="income.attestation_source_penalty",
        default=0,
        minimum=0,
    )
    attestation_target_reward_gwei = Gwei(
        "Reward for a timely target vote.",
        wire="income.attestation_target_reward",
        default=0,
        minimum=0,
    )
    attestation_target_penalty_gwei = Gwei(
        "Penalty for a missed or late target vote.",
        wire="income.attestation_target_penalty",
        default=0,
        minimum=0,
    )
    finality_delay_penalty_gwei = Gwei(
        "Penalty while the chain does not finalize (inactivity leak).",
        wire="income.finality_delay_penalty",
        default=0,
        minimum=0,
    )
    proposer_attestation_inclusion_reward_gwei = Gwei(
        "Reward for including attestations in a proposed block.",
        wire="income.proposer_attestation_inclusion_reward",
        default=0,
        minimum=0,
    )
    proposer_slashing_inclusion_reward_gwei = Gwei(
        "Reward for including slashings in a proposed block.",
        wire="income.proposer_slashing_inclusion_reward",
        default=0,
        minimum=0,
    )
    proposer_sync_inclusion_reward_gwei = Gwei(
        "Reward for including the sync aggregate in a proposed block.",
        wire="income.proposer_sync_inclusion_reward",
        default=0,
        minimum=0,
    )
    sync_committee_reward_gwei = Gwei(
        "Reward for signing as a sync-committee member.",
        wire="income.sync_committee_reward",
        default=0,
        minimum=0,
    )
    sync_committee_penalty_gwei = Gwei(
        "Penalty for not signing as a sync-committee member.",
        wire="income.sync_committee_penalty",
        default=0,
        minimum=0,
    )
    slashing_reward_gwei = Gwei(
        "Reward for reporting a slashing.", wire="income.slashing_reward", default=0, minimum=0
    )
    slashing_penalty_gwei = Gwei(
        "Penalty for having been slashed.", wire="income.slashing_penalty", default=0, minimum=0
    )
    proposals_missed = Count(
        "Proposals missed: a count, not an amount.",
        wire="income.proposals_missed",
        default=0,
        minimum=0,
    )
    tx_fee_reward_wei = Wei(
        "Priority fees of proposed blocks, relay payments not included: with a relay, the builder "
        "receives the fees and pays the proposer another amount (see load_produced_blocks).",
        wire="income.tx_fee_reward_wei",
        nullable=True,  # Without an execution node the fees are unknown.
        default=0,
        minimum=0,
        text=True,
    )

    calendar_fields = WEEK_OF_EPOCH


INCOME_HISTORY = Endpoint(
    "income_history",
    route="GET /api/v1/validator/{validators}/incomedetailhistory",
    table=IncomeHistory,
    parameters=(Identifiers("validators", IncomeHistory.validator_index),),
    pagination=EpochWindow(IncomeHistory.epoch, finalized=True),
    finality=Finality.AT_FINALITY,
    is_contiguous=True,
    absent=UNRESOLVED,
    lifetime=Lifetime.PENALTIES,
)


@loader(INCOME_HISTORY, missing="missing rows")
def load_income_history(
    validators: Subjects, *, since: Moment | None = None, until: Moment | None = None
) -> Values:
    """Load income by duty, one row per validator per epoch, in gwei (fees in wei).

    100 validators and 100 epochs per request.

    Parameters
    ----------
    validators
        Indices or public keys: one, or a list, range or Series of them, mixed, of any length.
    since, until
        First and last epoch, inclusive: an epoch, a negative number counting back from the latest
        finalized epoch (``since=-250`` is the last 250), a date, a datetime or ``"30d"``. Default:
        the last 100 finalized epochs.
        A date is the whole UTC day: ``until="2026-10-01"`` includes all of October 1.
        ``"2026-10"`` is the whole month.
        A Timestamp is one instant: ``until=pd.Timestamp("2026-10-01")`` ends at its midnight.

    Returns
    -------
    polars.DataFrame
        Sorted by ``validator_index``, ``epoch``. Every amount is positive, penalties too: net
        income is rewards less penalties (`beaconframes.analysis.income` computes it, and adds relay
        payments from the frame of `load_produced_blocks`). A validator has no rows for epochs in
        which it had no duties.

    Notes
    -----
    ``GET /api/v1/validator/{indexOrPubkey}/incomedetailhistory``. Final once the epoch is
    finalized.
    """
    return {"validators": validators, "since": since, "until": until}
