"""Sync-committee duties of slots, with their rewards."""

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


class SlotSyncCommitteeDuties(Table):
    """Sync-committee duties of slots. One row per slot per validator."""

    slot = Slot("Slot of the duty.", key=True, context="request.slot.number")
    validator_index = Count("Validator.", key=True, wire="validator.index")
    time = SlotTime("Start of the slot, UTC.")
    pubkey = Hex("BLS public key, 48 bytes.", wire="validator.public_key", size=48)
    status = Text("success, missed or scheduled.")
    total_wei = Wei(
        "Reward less penalty; may be negative; null until final.",
        wire="reward.total",
        text=True,
        nullable=True,
    )
    reward_wei = Wei(
        "Reward for signing.", wire="reward.reward", text=True, nullable=True, minimum=0
    )
    penalty_wei = Wei(
        "Penalty for not signing, a positive amount.",
        wire="reward.penalty",
        text=True,
        nullable=True,
        minimum=0,
    )
    missed_wei = Wei("Missed reward.", wire="reward.missed_reward", text=True, nullable=True)
    finality = Text(FINALITY, final_when=("finalized",))


SLOT_SYNC_COMMITTEE_DUTIES = Endpoint(
    "slot_sync_committee_duties",
    route="POST /api/v2/ethereum/slot/sync-committee-duties",
    table=SlotSyncCommitteeDuties,
    parameters=(
        ChainName(),
        SlotSelector(SlotSyncCommitteeDuties.slot, number_only=True),
        ValidatorSelector(
            SlotSyncCommitteeDuties.validator_index,
            pubkey=SlotSyncCommitteeDuties.pubkey,
            required=False,
            optional=True,
        ),
    ),
    pagination=Cursor(),
    finality=Finality.AT_FINALITY,
    envelope=Envelope.V2,
)


@loader(SLOT_SYNC_COMMITTEE_DUTIES)
def load_slot_sync_committee_duties(
    slots: Subjects = "finalized", validators: SubjectsOrSet | None = None
) -> Values:
    """Load sync-committee duties of slots with their rewards, one row per slot per validator, in
    wei.

    One slot per call and ten rows per request: 52 requests for the 512 seats of a slot. A validator
    with several seats has one row.

    Parameters
    ----------
    slots
        Slots: one, or a list, range or Series of them. ``"latest"`` and ``"finalized"`` are
        resolved to a number first. The service takes no block roots here.
    validators
        Only rows of these validators: indices, public keys, or a set; see `load_validators`.
        Default: all.

    Returns
    -------
    polars.DataFrame
        Sorted by ``slot``, ``validator_index``. `beaconframes.load_epoch_slots` loads the signature
        bits of 32 slots in one request, without rewards.

    Notes
    -----
    ``POST /api/v2/ethereum/slot/sync-committee-duties``. Finalized slots only.
    """
    return {"slots": slots, "validators": validators}
