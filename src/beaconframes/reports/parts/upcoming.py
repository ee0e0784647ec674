"""What is coming up: duties, activations and exits of the validators, and the queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes import analysis

if TYPE_CHECKING:
    from beaconframes.reports.input_frames import Frames, Inputs


def build_upcoming(inputs: Inputs, frames: Frames) -> Frames:
    """Return what is known of the future of the validators, and the queues of the network."""
    (validators,) = inputs.require("validators")
    found = analysis.upcoming_duties(
        validators,
        inputs.list_committees(),
        inputs.get("duties"),
        epoch=inputs.head,
        chain=inputs.chain,
    )
    queue = inputs.get("queue")
    return {"upcoming": found} | ({} if queue is None else {"queue": queue})
