"""Declarations of endpoints: parameters, requests, pagination, finality. Pure: no I/O."""

from beaconframes.endpoint.absent_table import ObjectNotFound, RequestRefused, SlotNotFinal
from beaconframes.endpoint.chain_head import ChainHead, End, Head
from beaconframes.endpoint.declaration import Call, Endpoint, Finality, Post, Shape
from beaconframes.endpoint.pagination import Cursor, EmptyPages, PageLoopGuard, Pages
from beaconframes.endpoint.parameter import (
    NATURAL,
    Batch,
    ColumnParameter,
    ExpectedRows,
    Fields,
    JsonSchema,
    NamedParameter,
    Parameter,
    Role,
    UnitRange,
)
from beaconframes.endpoint.parameters_v1 import (
    UNRESOLVED,
    EpochWindow,
    Identifiers,
    LastEpochs,
    Numbers,
    UnitPerRequest,
)
from beaconframes.endpoint.parameters_v2 import (
    ChainName,
    EntityName,
    OwnerOrOperator,
    SearchText,
    SortOrder,
    ValidatorSelector,
    ValueFilter,
)
from beaconframes.endpoint.positions_v2 import BlockSelector, PeriodSelector, SlotSelector
from beaconframes.endpoint.ranges_v2 import (
    EpochSelector,
    RollingWindow,
    SlotTimeRange,
    TimestampRange,
)
from beaconframes.endpoint.request import Envelope, Page, Request
from beaconframes.endpoint.texts import (
    ADDRESS,
    CREDENTIALS,
    ENS_NAME,
    TRANSACTION,
    AddressOrName,
    Texts,
)
