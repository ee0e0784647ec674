"""The range of slots, epochs and seconds that a V2 answer covers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes.endpoint import EpochIn, PeriodIn, SlotIn, TimestampsIn, WindowIn

if TYPE_CHECKING:
    from beaconframes.endpoint import Endpoint, Fields, View


def find_range(endpoint: Endpoint, fields: Fields, view: View) -> dict[str, Any]:
    """Return the range of the answer to *fields*, both ends included."""
    size = view.chain.slots_per_epoch
    first, last = view.head.slot, view.head.slot
    for parameter in endpoint.all_parameters:
        if isinstance(parameter, EpochIn):
            first, last = fields["epoch"] * size, (fields["epoch"] + 1) * size - 1
        elif isinstance(parameter, WindowIn):
            begin, end = parameter.epochs(fields, view)
            first, last = begin * size, (end + 1) * size - 1
        elif isinstance(parameter, TimestampsIn):
            first, last = parameter.slots(fields, view)
        elif isinstance(parameter, SlotIn):
            first = last = parameter.number(fields, view)
        elif isinstance(parameter, PeriodIn):
            length = view.chain.epochs_per_sync_period * size
            first = parameter.number(fields, view) * length
            last = first + length - 1

    def second(slot: int) -> int:
        return int(view.chain.time_of("slot", slot).timestamp())

    return {
        "slot": {"start": first, "end": last},
        "epoch": {"start": first // size, "end": last // size},
        "timestamp": {"start": second(first), "end": second(last + 1) - 1},
    }
