"""Columns of rewards by duty, shared by several endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.schema import Table, Text, Wei
from beaconframes.schema.decode_checked import build_absence_error
from beaconframes.schema.envelope_context import DATASET_MEMBER
from beaconframes.v2._columns import FINALITY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

    from beaconframes.calendar import Chain
    from beaconframes.schema import EnvelopeContext


class RewardColumns(Table):
    """Rewards by duty. Penalties and missed rewards are positive amounts.

    Without an execution node, an index does not have what blocks paid: such sums are null. Rewards
    of missed blocks are estimated from the rewards of the other blocks of the epoch; an index of
    chosen validators does not have these: null. A null of another service is an error.
    """

    total_wei = Wei(
        "Rewards less penalties; may be negative.", wire="total", text=True, nullable=True
    )
    total_reward_wei = Wei(
        "Sum of all rewards.", wire="total_reward", text=True, minimum=0, nullable=True
    )
    total_penalty_wei = Wei(
        "Sum of all penalties, a positive amount.", wire="total_penalty", text=True, minimum=0
    )
    total_missed_wei = Wei(
        "Sum of all missed rewards.", wire="total_missed", text=True, nullable=True
    )
    attestation_total_wei = Wei(
        "Attestations: rewards less penalties.", wire="attestation.total", text=True
    )
    attestation_head_total_wei = Wei(
        "Head votes: rewards less penalties.", wire="attestation.head.total", text=True
    )
    attestation_head_reward_wei = Wei(
        "Rewards for timely head votes.", wire="attestation.head.reward", text=True, minimum=0
    )
    attestation_head_penalty_wei = Wei(
        "Penalties for head votes; the protocol has none.",
        wire="attestation.head.penalty",
        text=True,
        minimum=0,
    )
    attestation_head_missed_wei = Wei(
        "Missed rewards of head votes.",
        wire="attestation.head.missed_reward",
        text=True,
        nullable=True,
    )
    attestation_source_total_wei = Wei(
        "Source votes: rewards less penalties.", wire="attestation.source.total", text=True
    )
    attestation_source_reward_wei = Wei(
        "Rewards for timely source votes.", wire="attestation.source.reward", text=True, minimum=0
    )
    attestation_source_penalty_wei = Wei(
        "Penalties for missed or late source votes.",
        wire="attestation.source.penalty",
        text=True,
        minimum=0,
    )
    attestation_source_missed_wei = Wei(
        "Missed rewards of source votes.",
        wire="attestation.source.missed_reward",
        text=True,
        nullable=True,
    )
    attestation_target_total_wei = Wei(
        "Target votes: rewards less penalties.", wire="attestation.target.total", text=True
    )
    attestation_target_reward_wei = Wei(
        "Rewards for timely target votes.", wire="attestation.target.reward", text=True, minimum=0
    )
    attestation_target_penalty_wei = Wei(
        "Penalties for missed or late target votes.",
        wire="attestation.target.penalty",
        text=True,
        minimum=0,
    )
    attestation_target_missed_wei = Wei(
        "Missed rewards of target votes.",
        wire="attestation.target.missed_reward",
        text=True,
        nullable=True,
    )
    attestation_inactivity_leak_penalty_wei = Wei(
        "Penalties while the chain does not finalize.",
        wire="attestation.inactivity_leak_penalty",
        text=True,
        minimum=0,
    )
    attestation_inclusion_delay_total_wei = Wei(
        "Rewards for early inclusion, before Altair; null since.",
        wire="attestation.inclusion_delay.total",
        text=True,
        optional=True,
    )
    attestation_inclusion_delay_missed_wei = Wei(
        "Missed rewards for early inclusion; null since Altair.",
        wire="attestation.inclusion_delay.missed_reward",
        text=True,
        optional=True,
    )
    sync_committee_total_wei = Wei(
        "Sync committees: rewards less penalties.", wire="sync_committee.total", text=True
    )
    sync_committee_reward_wei = Wei(
        "Rewards for signing as a member.", wire="sync_committee.reward", text=True, minimum=0
    )
    sync_committee_penalty_wei = Wei(
        "Penalties for not signing as a member.",
        wire="sync_committee.penalty",
        text=True,
        minimum=0,
    )
    sync_committee_missed_wei = Wei(
        "Missed rewards of members.", wire="sync_committee.missed_reward", text=True
    )
    proposal_total_wei = Wei(
        "Proposals: rewards of both layers.", wire="proposal.total", text=True, nullable=True
    )
    proposal_execution_layer_reward_wei = Wei(
        "Priority fees, or the payment of the builder.",
        wire="proposal.execution_layer_reward",
        text=True,
        minimum=0,
        nullable=True,
    )
    proposal_attestation_inclusion_reward_wei = Wei(
        "Rewards for including attestations.",
        wire="proposal.attestation_inclusion_reward",
        text=True,
        minimum=0,
    )
    proposal_sync_inclusion_reward_wei = Wei(
        "Rewards for including the sync aggregate.",
        wire="proposal.sync_inclusion_reward",
        text=True,
        minimum=0,
    )
    proposal_slashing_inclusion_reward_wei = Wei(
        "Rewards for including slashings.",
        wire="proposal.slashing_inclusion_reward",
        text=True,
        minimum=0,
    )
    proposal_missed_cl_reward_wei = Wei(
        "Consensus-layer rewards of missed blocks.",
        wire="proposal.missed_cl_reward",
        text=True,
        minimum=0,
        nullable=True,
    )
    proposal_missed_el_reward_wei = Wei(
        "Execution-layer rewards of missed blocks.",
        wire="proposal.missed_el_reward",
        text=True,
        minimum=0,
        nullable=True,
    )
    finality = Text(FINALITY, final_when=("finalized",))

    @classmethod
    def decode(
        cls, pages: Iterable[bytes], chain: Chain, contexts: Sequence[EnvelopeContext] = ()
    ) -> pl.DataFrame:
        """Return the rows; raise SchemaError for a null that no index of a node explains."""
        rows = super().decode(pages, chain, contexts)
        if not any(DATASET_MEMBER in context.members for context in contexts):
            for column in cls.columns:
                cells = rows[column.name]
                if column.nullable and column.name.endswith("_wei") and cells.null_count():
                    raise build_absence_error(cls.spec, column, cells.is_null().arg_max() or 0)
        return rows
