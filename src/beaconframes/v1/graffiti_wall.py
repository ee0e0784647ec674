"""The graffiti wall: pixels painted by blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes.client import Values, loader
from beaconframes.endpoint import Batch, Endpoint, Finality
from beaconframes.schema import Count, Slot, SlotTime, Table, Text
from beaconframes.time_range import Moment
from beaconframes.v1._wall_parameters import Region, SlotWindow, Switch

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from beaconframes.endpoint import ChainHead


class GraffitiWall(Table):
    """The graffiti wall. One row per painted pixel; a slot paints at most one."""

    slot = Slot("Slot of the block with the paint.", key=True)
    x = Count("Pixels from the left edge, 0 to 999.", key=True)
    y = Count("Pixels from the top edge, 0 to 999.", key=True)
    time = SlotTime("Start of the slot, UTC.")
    color = Text("Six hex digits without #, in upper or lower case as painted.")
    validator_index = Count("Proposer of the block.", wire="validator")


def last_paint(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return the latest row of each pixel."""
    return rows.sort("slot").unique(["x", "y"], keep="last", maintain_order=True)


WINDOW = SlotWindow(GraffitiWall.slot)


class Summary(Switch):
    """Whether to return the latest paint of each pixel only.

    For a range that ends before slot 10,000, the client summarizes: the service ignores such an
    end, and would also return paint of later slots.
    """

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return ``true``, or ``false`` if ``finish`` must summarize instead of the service."""
        (batch,) = super().batches(values, chain_head)
        since, until = values["since"], values["until"]
        early = until is not None and WINDOW.last(since, until, chain_head) < WINDOW.default
        return [Batch({self.wire: "false"})] if early else [batch]


GRAFFITI_WALL = Endpoint(
    "graffiti_wall",
    route="GET /api/v1/graffitiwall",
    table=GraffitiWall,
    parameters=(
        WINDOW,
        Region(GraffitiWall.x, GraffitiWall.y),
        Summary("summarize", wire="summarize", keep=last_paint),
    ),
    finality=Finality.AT_FINALITY,
)


@loader(GRAFFITI_WALL)
def load_graffiti_wall(
    region: tuple[int, int, int, int] | None = None,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    summarize: bool = False,
) -> Values:
    """Load the graffiti wall, one row per painted pixel, oldest first.

    One request per 500,000 slots.

    Parameters
    ----------
    region
        ``(left, top, right, bottom)``, both corners included. Default: the whole wall.
    since, until
        First and last slot, inclusive: a slot, a negative number counting back from the latest
        (``since=-100_000``), a date, a datetime or ``"30d"``; ``since=0`` is the whole history.
        Default: the last 10,001 slots, as in the service.
        A date is the whole UTC day: ``until="2026-10-01"`` includes all of October 1.
        ``"2026-10"`` is the whole month.
        A Timestamp is one instant: ``until=pd.Timestamp("2026-10-01")`` ends at its midnight.
    summarize
        Whether to load the latest paint of each pixel only, instead of every paint.

    Returns
    -------
    polars.DataFrame
        Sorted by ``slot``: painting row after row draws the wall (`beaconframes.wall`).

    Notes
    -----
    ``GET /api/v1/graffitiwall``. Final once the epoch of the slot is finalized.
    """
    return {"region": region, "since": since, "until": until, "summarize": summarize}
