"""Slots in which validators had to propose."""

from __future__ import annotations

from beaconframes.client import SubjectsOrSet, Values, loader
from beaconframes.endpoint import (
    ChainName,
    Cursor,
    Endpoint,
    Envelope,
    Finality,
    SlotTimeRange,
    ValidatorSelector,
)
from beaconframes.schema import Count, Hex, Slot, SlotTime, Table, Text
from beaconframes.time_range import Moment
from beaconframes.v2._columns import FINALITY


class ProposalSlots(Table):
    """Slots with a proposal. One row per slot."""

    slot = Slot("Slot.", key=True)
    time = SlotTime("Start of the slot, UTC.")
    validator_index = Count("Validator that had to propose.", wire="validator.index")
    pubkey = Hex("BLS public key, 48 bytes.", wire="validator.public_key", size=48)
    block_number = Count(
        "Number of the execution block; null before the merge and in a slot without a block.",
        wire="block",
        nullable=True,
    )
    finality = Text(FINALITY, final_when=("finalized",))


PROPOSAL_SLOTS = Endpoint(
    "proposal_slots",
    route="POST /api/v2/ethereum/validators/proposal-slots",
    table=ProposalSlots,
    parameters=(
        ChainName(),
        ValidatorSelector(
            ProposalSlots.validator_index, pubkey=ProposalSlots.pubkey, required=False
        ),
        SlotTimeRange(ProposalSlots.slot),
    ),
    pagination=Cursor(),
    finality=Finality.AT_FINALITY,
    envelope=Envelope.V2,
)


@loader(PROPOSAL_SLOTS)
def load_proposal_slots(
    validators: SubjectsOrSet, *, since: Moment | None = None, until: Moment | None = None
) -> Values:
    """Load the slots in which validators had to propose, one row per slot.

    Ten rows per request, for 100 validators (20 on the smallest plans) and any range.

    Parameters
    ----------
    validators
        Indices, public keys, or a set; see `load_validators`.
    since, until
        First and last slot, inclusive: a slot, a negative number counting back from the latest, a
        date, a datetime or ``"30d"``. Default: from genesis to the latest slot.
        A date is the whole UTC day: ``until="2026-10-01"`` includes all of October 1.
        ``"2026-10"`` is the whole month.
        A Timestamp is one instant: ``until=pd.Timestamp("2026-10-01")`` ends at its midnight.

    Returns
    -------
    polars.DataFrame
        Sorted by ``slot``. Finalized slots only. A validator without proposals has no rows, and is
        not reported as missing. `load_slot` and `beaconframes.load_proposals` say whether a slot
        without a block was missed or orphaned.

    Notes
    -----
    ``POST /api/v2/ethereum/validators/proposal-slots``. Final immediately.
    """
    return {"validators": validators, "since": since, "until": until}
