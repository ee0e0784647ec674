"""The range of slots, epochs and seconds that a V2 answer covers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes.answers.v2 import RANGES

if TYPE_CHECKING:
    from beaconframes.endpoint import Endpoint, Fields, View


def find_range(endpoint: Endpoint, fields: Fields, view: View) -> dict[str, Any]:
    """Return the range of the answer to *fields*, both ends included."""
    size = view.chain.slots_per_epoch
    first, last = view.head.slot, view.head.slot
    for parameter in endpoint.all_parameters:
        first, last = parameter.slot_range(fields, view) or (first, last)
    if endpoint.name in RANGES:
        first, last = RANGES[endpoint.name](view, first, last)

    def second(slot: int) -> int:
        return int(view.chain.time_of("slot", slot).timestamp())

    return {
        "slot": {"start": first, "end": last},
        "epoch": {"start": first // size, "end": last // size},
        "timestamp": {"start": second(first), "end": second(last + 1) - 1},
    }
