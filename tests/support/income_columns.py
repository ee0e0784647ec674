"""The amounts in gwei of an income history, as the specification lists them."""

REWARDS = (
    "attestation_head_reward_gwei",
    "attestation_source_reward_gwei",
    "attestation_target_reward_gwei",
    "proposer_attestation_inclusion_reward_gwei",
    "proposer_slashing_inclusion_reward_gwei",
    "proposer_sync_inclusion_reward_gwei",
    "sync_committee_reward_gwei",
    "slashing_reward_gwei",
)
PENALTIES = (
    "attestation_source_penalty_gwei",
    "attestation_target_penalty_gwei",
    "finality_delay_penalty_gwei",
    "sync_committee_penalty_gwei",
    "slashing_penalty_gwei",
)
