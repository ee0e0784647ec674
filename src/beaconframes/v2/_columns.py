"""Columns that the tables of V2 share, and fields of a record that have no column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from beaconframes.schema import Count, Epoch, Table, Text, UnixTime

if TYPE_CHECKING:
    from collections.abc import Collection

FINALITY = "finalized or not_finalized: only the latter can still change."

ABSENT = "resource was not found"
"""Part of the error message for an unknown item; other requested items may exist."""

NO_VALIDATORS = "no validators found"
"""Part of the error message if all requested validators are unknown; a response without any row
means the same."""


class NullableEpoch(Epoch):
    """An epoch that is null on the wire until it is set."""

    def encode(self) -> pl.Expr:
        """Return the epochs as they are."""
        return pl.col(self.name)


class Undocumented(Text):
    """A field without a published shape: text stays text, anything else becomes JSON."""

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
    """A number assigned by the client, which distinguishes otherwise equal rows."""

    derived = True


class WindowColumns(Table):
    """The requested window, and the epochs that the service used."""

    window = Text("Requested window.", context="request.range.evaluation_window")
    first_epoch = Epoch("First epoch of the window.", context="range.epoch.start")
    last_epoch = Epoch("Last epoch of the window.", context="range.epoch.end")
    start_time = UnixTime("Start of the window, UTC.", context="range.timestamp.start")
    end_time = UnixTime("Last second of the window, UTC.", context="range.timestamp.end")


class RankingColumns(Table):
    """The requested window, and the time of the figures."""

    window = Text("Requested window.", context="request.range.evaluation_window")
    first_epoch = Epoch("First epoch of the window.", context="range.epoch.start")
    last_epoch = Epoch("Last epoch of the window.", context="range.epoch.end")
    last_updated = UnixTime(
        "Time at which the service computed the figures, UTC.", context="last_updated"
    )
    is_ranking = True

    @classmethod
    def arrange(cls, frame: pl.DataFrame, first: str = "") -> pl.DataFrame:  # noqa: ARG003
        """Return *frame* in its order, without repeated rows."""
        checked = super().arrange(frame)
        return frame.unique(cls.key(), keep="first", maintain_order=True) if cls.key() else checked


def split_fields(
    record: dict[str, Any], paths: Collection[str], prefix: str = ""
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields of *record* that are at one of the *paths* of columns, and the others."""
    with_column: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name, value in record.items():
        path = f"{prefix}{name}"
        if path in paths and not isinstance(value, dict):
            with_column[name] = value
        elif isinstance(value, dict | None) and any(p.startswith(f"{path}.") for p in paths):
            # An object whose fields are all null may be null.
            inner, others = split_fields(value or {}, paths, f"{path}.")
            with_column |= {name: inner} if inner else {}
            rest |= {name: others} if others else {}
        else:
            rest[name] = value
    return with_column, rest
