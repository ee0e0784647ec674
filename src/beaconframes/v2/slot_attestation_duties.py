"""Attestation duties of slots, with their rewards."""

from __future__ import annotations

from beaconframes.client import Subjects, SubjectsOrSet, Values, loader
from beaconframes.endpoint import (
    ChainName,
    Cursor,
    Endpoint,
    Envelope,
    Finality,
    SlotSelector,
    ValidatorSelector,
)
from beaconframes.schema import Count, Hex, Slot, SlotTime, Table, Text, Wei
from beaconframes.v2._columns import FINALITY


class SlotAttestationDuties(Table):
    """Attestation duties of slots. One row per slot per validator."""

    slot = Slot("Attested slot.", key=True, context="request.slot.number")
    validator_index = Count("Validator.", key=True, wire="validator.index")
    time = SlotTime("Start of the slot, UTC.")
    pubkey = Hex("BLS public key, 48 bytes.", wire="validator.public_key", size=48)
    committee_index = Count("Committee.", wire="attestation_committee_index")
    status = Text("success, missed or scheduled; the service may add values.")
    inclusion_slot = Slot("Slot of the block that included it; null until one does.", nullable=True)
    inclusion_delay = Count(
        "Slots after the first possible one until the inclusion; 0 is best.", nullable=True
    )
    inclusion_delay_without_missed_block = Count(
        "That number without slots that have no block.", nullable=True
    )
    reward_total_wei = Wei(
        "Rewards less penalties; null until the service knows them.",
        wire="reward.total",
        text=True,
        nullable=True,
    )
    head_total_wei = Wei(
        "Head vote: reward less penalty.", wire="reward.head.total", text=True, nullable=True
    )
    head_reward_wei = Wei(
        "Reward for that vote.", wire="reward.head.reward", text=True, nullable=True, minimum=0
    )
    head_penalty_wei = Wei(
        "Penalty for that vote; the protocol has none.",
        wire="reward.head.penalty",
        text=True,
        nullable=True,
        minimum=0,
    )
    head_missed_wei = Wei(
        "Missed reward of that vote.", wire="reward.head.missed_reward", text=True, nullable=True
    )
    source_total_wei = Wei(
        "Source vote: reward less penalty.", wire="reward.source.total", text=True, nullable=True
    )
    source_reward_wei = Wei(
        "Reward for that vote.", wire="reward.source.reward", text=True, nullable=True, minimum=0
    )
    source_penalty_wei = Wei(
        "Penalty for that vote, a positive amount.",
        wire="reward.source.penalty",
        text=True,
        nullable=True,
        minimum=0,
    )
    source_missed_wei = Wei(
        "Missed reward of that vote.", wire="reward.source.missed_reward", text=True, nullable=True
    )
    target_total_wei = Wei(
        "Target vote: reward less penalty.", wire="reward.target.total", text=True, nullable=True
    )
    target_reward_wei = Wei(
        "Reward for that vote.", wire="reward.target.reward", text=True, nullable=True, minimum=0
    )
    target_penalty_wei = Wei(
        "Penalty for that vote, a positive amount.",
        wire="reward.target.penalty",
        text=True,
        nullable=True,
        minimum=0,
    )
    target_missed_wei = Wei(
        "Missed reward of that vote.", wire="reward.target.missed_reward", text=True, nullable=True
    )
    inactivity_leak_penalty_wei = Wei(
        "Penalty while the chain does not finalize.",
        wire="reward.inactivity_leak_penalty",
        text=True,
        nullable=True,
        minimum=0,
    )
    inclusion_delay_total_wei = Wei(
        "Reward for early inclusion; null since Altair.",
        wire="reward.inclusion_delay.total",
        text=True,
        optional=True,
    )
    inclusion_delay_missed_wei = Wei(
        "Missed reward for early inclusion; null since Altair.",
        wire="reward.inclusion_delay.missed_reward",
        text=True,
        optional=True,
    )
    finality = Text(FINALITY, final_when=("finalized",))


SLOT_ATTESTATION_DUTIES = Endpoint(
    "slot_attestation_duties",
    route="POST /api/v2/ethereum/slot/attestation-duties",
    table=SlotAttestationDuties,
    parameters=(
        ChainName(),
        SlotSelector(SlotAttestationDuties.slot, number_only=True, final_only=True),
        ValidatorSelector(
            SlotAttestationDuties.validator_index,
            pubkey=SlotAttestationDuties.pubkey,
            required=False,
            optional=True,
        ),
    ),
    pagination=Cursor(),
    finality=Finality.AT_FINALITY,
    envelope=Envelope.V2,
)


@loader(SLOT_ATTESTATION_DUTIES)
def load_slot_attestation_duties(
    slots: Subjects = "latest", validators: SubjectsOrSet | None = None
) -> Values:
    """Load attestation duties of slots with their rewards, one row per slot per validator, in wei.

    One slot per call and ten rows per request. A slot on mainnet has 30,000 duties, so name
    validators. `beaconframes.load_attestations` loads a hundred validators and epochs per request,
    without rewards.

    Parameters
    ----------
    slots
        Slots: one, or a list, range or Series of them. ``"latest"`` and ``"finalized"`` are both
        the last finalized slot; the service answers 404 for later ones. It takes no block roots
        here.
    validators
        Only rows of these validators: indices, public keys, or a set; see `load_validators`.
        Default: all.

    Returns
    -------
    polars.DataFrame
        Sorted by ``slot``, ``validator_index``. Only ``*total_wei`` may be negative. Amounts are
        null until the service knows them.

    Notes
    -----
    ``POST /api/v2/ethereum/slot/attestation-duties``. Final once the epoch of the slot and the next
    one are finalized.
    """
    return {"slots": slots, "validators": validators}
