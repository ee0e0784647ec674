"""What an endpoint is: selectors, windows, finality, the plan of requests. Pure: no I/O."""

from beaconframes.endpoint.chain_head import ChainHead, End, Head
from beaconframes.endpoint.cursor import Cursor
from beaconframes.endpoint.declaration import Call, Endpoint, Final, Post, Shape
from beaconframes.endpoint.machines import Between, MachinesIn
from beaconframes.endpoint.members import EpochIn, OnChain, SomeOf, ValidatorsIn, WindowIn
from beaconframes.endpoint.page_loop_guard import PageLoopGuard
from beaconframes.endpoint.pagination import Pages
from beaconframes.endpoint.parameter import Absent, Batch, Fields, Parameter, Refused, View, Wanted
from beaconframes.endpoint.parameters_v1 import UNRESOLVED, Identifiers, Values
from beaconframes.endpoint.pixels import Region, Switch
from beaconframes.endpoint.places import BlockIn, PeriodIn, SlotIn
from beaconframes.endpoint.ranking import EntityIn, PartyIn, Searched, SortedBy
from beaconframes.endpoint.request import Envelope, Page, Request
from beaconframes.endpoint.spans import TimestampsIn
from beaconframes.endpoint.texts import ADDRESS, CREDENTIALS, ENS_NAME, TRANSACTION, Texts
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
    "ChainHead",
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
    "Identifiers",
    "MachinesIn",
    "OnChain",
    "Page",
    "PageLoopGuard",
    "Pages",
    "Parameter",
    "PartyIn",
    "PeriodIn",
    "Post",
    "RecentEpochs",
    "Refused",
    "Region",
    "Request",
    "Searched",
    "Shape",
    "SlotIn",
    "SlotWindow",
    "SomeOf",
    "SortedBy",
    "Switch",
    "Texts",
    "TimestampsIn",
    "ValidatorsIn",
    "Values",
    "View",
    "Wanted",
    "WindowIn",
]
