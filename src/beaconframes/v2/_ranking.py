"""What rankings share: the window that they are of, and an order that is the answer's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.schema import Epoch, Table, Text, UnixTime

if TYPE_CHECKING:
    import polars as pl


class Ranking(Table):
    """The window that figures are of, and when they were worked out."""

    window = Text("Window that was asked for.", context="request.range.evaluation_window")
    first_epoch = Epoch("First epoch of the window.", context="range.epoch.start")
    last_epoch = Epoch("Last epoch of the window.", context="range.epoch.end")
    last_updated = UnixTime("When the service worked the figures out, UTC.", context="last_updated")

    @classmethod
    def arrange(cls, frame: pl.DataFrame) -> pl.DataFrame:
        """Return *frame* in the order in which it came, every row once."""
        once = super().arrange(frame)
        return frame.unique(cls.key(), keep="first", maintain_order=True) if cls.key() else once
