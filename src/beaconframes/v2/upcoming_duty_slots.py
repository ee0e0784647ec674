"""Slots with future duties of validators."""

from __future__ import annotations

from beaconframes.client import SubjectsOrSet, Values, loader
from beaconframes.endpoint import ChainName, Cursor, Endpoint, Envelope, ValidatorSelector
from beaconframes.schema import Slot, Table


class UpcomingDutySlots(Table):
    """Slots with future duties. One row per record, with all fields of the service."""

    first_slot = Slot("First slot of the searched range.", context="range.slot.start")
    last_slot = Slot("Last slot of the searched range.", context="range.slot.end")

    keeps_every_field = True


UPCOMING_DUTY_SLOTS = Endpoint(
    "upcoming_duty_slots",
    route="POST /api/v2/ethereum/validators/upcoming-duty-slots",
    table=UpcomingDutySlots,
    parameters=(ChainName(), ValidatorSelector(batched="refused")),
    pagination=Cursor(),
    envelope=Envelope.V2,
)


@loader(UPCOMING_DUTY_SLOTS)
def load_upcoming_duty_slots(validators: SubjectsOrSet) -> Values:
    """Load the slots with future duties of validators, one row per record of the service.

    One request per page. At most 100 validators (20 on the smallest plans) or a dashboard of any
    size: rows may not name their validator, so rows of several requests could not be distinguished.

    Parameters
    ----------
    validators
        Indices, public keys, or a set; see `load_validators`.

    Returns
    -------
    polars.DataFrame
        In the order of the service. Every field of a record is a column.

    Notes
    -----
    ``POST /api/v2/ethereum/validators/upcoming-duty-slots``. Its request is assumed to be that of
    ``validators/sync-committee-periods``. The shape of its response is not published: names and
    types of columns follow from the response. If the service does not have it yet, the call raises
    `NotServed`. A node answers with the duties of the rest of its epoch and of the next one.
    """
    return {"validators": validators}
