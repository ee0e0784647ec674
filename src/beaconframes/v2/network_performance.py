"""Duty scores of all validators together over a window."""

from __future__ import annotations

from beaconframes.client import Values, loader
from beaconframes.endpoint import ChainName, Endpoint, Envelope, RollingWindow, Shape
from beaconframes.v2._columns import WindowColumns
from beaconframes.v2._score_columns import ScoreColumns


class NetworkPerformance(WindowColumns, ScoreColumns):
    """Duty scores of all validators together over a window. One row."""


NETWORK_PERFORMANCE = Endpoint(
    "network_performance",
    route="POST /api/v2/ethereum/performance-aggregate",
    table=NetworkPerformance,
    parameters=(ChainName(), RollingWindow(NetworkPerformance.last_epoch)),
    envelope=Envelope.V2,
    shape=Shape.OBJECT,
)


@loader(NETWORK_PERFORMANCE)
def load_network_performance(window: str = "30d") -> Values:
    """Load the duty scores of all validators together over a window, one row.

    One request. Use it as a benchmark for your own validators: `load_performance_aggregate` has
    their scores.

    Parameters
    ----------
    window
        ``"24h"``, ``"7d"``, ``"30d"``, ``"90d"`` or ``"all_time"``. It ends with the latest
        finalized epoch.

    Returns
    -------
    polars.DataFrame
        One row, with the epochs of the window. Scores are fractions. Do not average the scores of
        several windows: add up the counts. The service requires its badge beside every BeaconScore
        that is published.

    Notes
    -----
    ``POST /api/v2/ethereum/performance-aggregate``. Never final: the window moves.
    """
    return {"window": window}
