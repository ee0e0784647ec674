"""What the tables of generation 2 share: columns that its answers write in ways of their own."""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl

from beaconframes.schema import Count, Epoch, Table, Text, UnixTime

FINALITY = "Whether it can still change: finalized or not_finalized."

ABSENT = "resource was not found"
"""How the service says that there is no such thing: one of many asked for can then be missing."""


class OpenEpoch(Epoch):
    """An epoch that is written as null while there is none."""

    def encode(self) -> pl.Expr:
        """Return the epochs as they are."""
        return pl.col(self.name)


class Told(Text):
    """Something whose shape nobody has published: a text as it came, anything else as JSON."""

    def wire_type(self) -> Any:
        """Return any JSON type."""
        return Any

    def parse(self, value: Any) -> str | None:
        """Return the text."""
        if value is None or isinstance(value, str):
            return value
        return msgspec.json.encode(value).decode()

    def build(self, values: list[Any]) -> pl.Series:
        """Return the texts."""
        return super().build([self.parse(value) for value in values])


class Ordinal(Count):
    """A number that is counted here, so that rows which are otherwise alike stay apart."""

    derived = True

    @property
    def wire_paths(self) -> tuple[str, ...]:
        """None: the wire does not have it."""
        return ()


class Windowed(Table):
    """The window that something is of, and which epochs the service took for it."""

    window = Text("Window that was asked for.", context="request.range.evaluation_window")
    first_epoch = Epoch("First epoch of the window.", context="range.epoch.start")
    last_epoch = Epoch("Last epoch of the window.", context="range.epoch.end")
    start_time = UnixTime("Start of the window, UTC.", context="range.timestamp.start")
    end_time = UnixTime("Its last second, UTC.", context="range.timestamp.end")
