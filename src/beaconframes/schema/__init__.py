"""Column types and tables: what a row is, in one place."""

from beaconframes.schema.column import Column, type_name
from beaconframes.schema.envelope_context import EnvelopeContext
from beaconframes.schema.numbers import (
    FAR_FUTURE,
    Count,
    Day,
    Epoch,
    Flag,
    Fraction,
    Gwei,
    Indices,
    Number,
    Period,
    Position,
    Slot,
    Units,
    Wei,
)
from beaconframes.schema.table import WEEK_OF_EPOCH, Implied, Table
from beaconframes.schema.texts import Asked, Code, DecimalText, Hex, Json, NumberCode, Text
from beaconframes.schema.times import (
    DayTime,
    EpochTime,
    SlotTime,
    TimeOf,
    Timestamp,
    UnixMillis,
    UnixTime,
)

__all__ = [
    "FAR_FUTURE",
    "WEEK_OF_EPOCH",
    "Asked",
    "Code",
    "Column",
    "Count",
    "Day",
    "DayTime",
    "DecimalText",
    "EnvelopeContext",
    "Epoch",
    "EpochTime",
    "Flag",
    "Fraction",
    "Gwei",
    "Hex",
    "Implied",
    "Indices",
    "Json",
    "Number",
    "NumberCode",
    "Period",
    "Position",
    "Slot",
    "SlotTime",
    "Table",
    "Text",
    "TimeOf",
    "Timestamp",
    "Units",
    "UnixMillis",
    "UnixTime",
    "Wei",
    "type_name",
]
