"""Column types and tables: they declare rows, and decode and encode them."""

from beaconframes.schema.columns import WEEK_OF_EPOCH, CalendarField, Column
from beaconframes.schema.envelope_context import EnvelopeContext
from beaconframes.schema.invariants import (
    Consecutive,
    SameAddress,
    SamePubkey,
    SlotInEpoch,
    WholeCommittee,
)
from beaconframes.schema.numbers import (
    FAR_FUTURE,
    Count,
    Day,
    DecimalPlaces,
    Epoch,
    Ether,
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
from beaconframes.schema.table import Table
from beaconframes.schema.texts import Code, DecimalText, Hex, Json, NumberCode, Text
from beaconframes.schema.times import (
    DayTime,
    EpochTime,
    SlotTime,
    TimeOf,
    Timestamp,
    UnixMillis,
    UnixTime,
)
