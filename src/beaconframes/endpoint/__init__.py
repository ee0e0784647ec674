"""What an endpoint is: selectors, windows, finality, the plan of requests. Pure: no I/O."""

from beaconframes.endpoint.cursor import Cursor
from beaconframes.endpoint.declaration import Call, Endpoint, Final, Post, Shape
from beaconframes.endpoint.horizon import End, Head, Horizon
from beaconframes.endpoint.machines import Between, MachinesIn
from beaconframes.endpoint.members import EpochIn, OnChain, SomeOf, ValidatorsIn, WindowIn
from beaconframes.endpoint.pages import Pages
from beaconframes.endpoint.pixels import Region, Switch
from beaconframes.endpoint.places import BlockIn, PeriodIn, SlotIn
from beaconframes.endpoint.ranking import EntityIn, PartyIn, Searched, SortedBy
from beaconframes.endpoint.request import Envelope, Page, Request
from beaconframes.endpoint.selection import Absent, Batch, Fields, Refused, Selector, View, Wanted
from beaconframes.endpoint.selectors import UNRESOLVED, Identifiers, Values
from beaconframes.endpoint.spans import TimestampsIn
from beaconframes.endpoint.texts import ADDRESS, CREDENTIALS, ENS_NAME, TRANSACTION, Texts
from beaconframes.endpoint.trail import Trail
from beaconframes.endpoint.windows import (
    Each,
    EpochTail,
    EpochWindow,
    RecentEpochs,
    SlotWindow,
)

__all__ = [
    "ADDRESS",
    "CREDENTIALS",
    "ENS_NAME",
    "TRANSACTION",
    "UNRESOLVED",
    "Absent",
    "Batch",
    "Between",
    "BlockIn",
    "Call",
    "Cursor",
    "Each",
    "End",
    "Endpoint",
    "EntityIn",
    "Envelope",
    "EpochIn",
    "EpochTail",
    "EpochWindow",
    "Fields",
    "Final",
    "Head",
    "Horizon",
    "Identifiers",
    "MachinesIn",
    "OnChain",
    "Page",
    "Pages",
    "PartyIn",
    "PeriodIn",
    "Post",
    "RecentEpochs",
    "Refused",
    "Region",
    "Request",
    "Searched",
    "Selector",
    "Shape",
    "SlotIn",
    "SlotWindow",
    "SomeOf",
    "SortedBy",
    "Switch",
    "Texts",
    "TimestampsIn",
    "Trail",
    "ValidatorsIn",
    "Values",
    "View",
    "Wanted",
    "WindowIn",
]
