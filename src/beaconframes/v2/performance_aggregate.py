"""Duty scores of a set of validators over a window."""

from __future__ import annotations

from beaconframes.client import SubjectsOrSet, Values, loader
from beaconframes.endpoint import (
    ChainName,
    Endpoint,
    Envelope,
    RollingWindow,
    Shape,
    ValidatorSelector,
)
from beaconframes.schema import Epoch, Text, UnixTime
from beaconframes.v2._score_columns import ScoreColumns


class PerformanceAggregate(ScoreColumns):
    """Duty scores of a set over a window. One row."""

    window = Text("Requested window.", context="request.range.evaluation_window")
    first_epoch = Epoch("First epoch of the window.", context="range.epoch.start")
    last_epoch = Epoch("Last epoch of the window.", context="range.epoch.end")
    start_time = UnixTime("Start of the window, UTC.", context="range.timestamp.start")
    end_time = UnixTime("Last second of the window, UTC.", context="range.timestamp.end")


PERFORMANCE_AGGREGATE = Endpoint(
    "performance_aggregate",
    route="POST /api/v2/ethereum/validators/performance-aggregate",
    table=PerformanceAggregate,
    parameters=(
        ChainName(),
        ValidatorSelector(batched="refused"),
        RollingWindow(PerformanceAggregate.last_epoch),
    ),
    envelope=Envelope.V2,
    shape=Shape.OBJECT,
)


@loader(PERFORMANCE_AGGREGATE)
def load_performance_aggregate(validators: SubjectsOrSet, window: str = "30d") -> Values:
    """Load the duty scores of a set of validators over a window, one row.

    One request. At most 100 validators (20 on the smallest plans) or a dashboard of any size: the
    score of a set does not follow from those of its parts.

    Parameters
    ----------
    validators
        Indices, public keys, or a set; see `load_validators`.
    window
        ``"24h"``, ``"7d"``, ``"30d"``, ``"90d"`` or ``"all_time"``. It ends with the latest
        finalized epoch.

    Returns
    -------
    polars.DataFrame
        One row, with the epochs of the window. The service requires its badge beside every
        BeaconScore that is published.

    Notes
    -----
    ``POST /api/v2/ethereum/validators/performance-aggregate``. Never final: the window moves.
    """
    return {"validators": validators, "window": window}
