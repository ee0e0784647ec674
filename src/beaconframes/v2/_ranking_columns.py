"""Columns that the rankings of V2 share; rows keep the order of the response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.schema import Epoch, Table, Text, UnixTime

if TYPE_CHECKING:
    import polars as pl


class RankingColumns(Table):
    """The requested window, and the time of the figures."""

    window = Text("Requested window.", context="request.range.evaluation_window")
    first_epoch = Epoch("First epoch of the window.", context="range.epoch.start")
    last_epoch = Epoch("Last epoch of the window.", context="range.epoch.end")
    last_updated = UnixTime(
        "Time at which the service computed the figures, UTC.", context="last_updated"
    )

    @classmethod
    def arrange(cls, frame: pl.DataFrame) -> pl.DataFrame:
        """Return *frame* in its order, without repeated rows."""
        once = super().arrange(frame)
        return frame.unique(cls.key(), keep="first", maintain_order=True) if cls.key() else once
