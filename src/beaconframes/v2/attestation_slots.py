"""Slots that validators had to attest."""

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
from beaconframes.schema import Slot, Table
from beaconframes.time_range import Moment


class AttestationSlots(Table):
    """Slots to attest. One row per slot, with all fields of the service."""

    first_slot = Slot("First slot of the searched range.", context="range.slot.start")
    last_slot = Slot("Last slot of the searched range.", context="range.slot.end")

    keeps_every_field = True


ATTESTATION_SLOTS = Endpoint(
    "attestation_slots",
    route="POST /api/v2/ethereum/validators/attestation-slots",
    table=AttestationSlots,
    parameters=(ChainName(), ValidatorSelector(batched="refused"), SlotTimeRange()),
    pagination=Cursor(),
    finality=Finality.AT_FINALITY,
    envelope=Envelope.V2,
)


@loader(ATTESTATION_SLOTS)
def load_attestation_slots(
    validators: SubjectsOrSet, *, since: Moment | None = None, until: Moment | None = None
) -> Values:
    """Load the slots that validators had to attest, one row per slot, with counts.

    One request per page. At most 100 validators (20 on the smallest plans) or a dashboard of any
    size: a row counts the validators of its request only. `beaconframes.load_attestations` loads
    the single votes of the last 100 epochs.

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
        In the order of the service. Every field of a record is a column.

    Notes
    -----
    ``POST /api/v2/ethereum/validators/attestation-slots``. Finalized slots only. The shape of its
    response is not published: names and types of columns follow from the response.
    """
    return {"validators": validators, "since": since, "until": until}
