"""Sub-entities: the parts of an entity, such as the node operators of a pool."""

from __future__ import annotations

from collections.abc import Iterable

from beaconframes.client import Values, loader
from beaconframes.endpoint import (
    ChainName,
    Cursor,
    Endpoint,
    EntityName,
    Envelope,
    RollingWindow,
    SortOrder,
)
from beaconframes.schema import Count, Fraction, Text
from beaconframes.v2._columns import RankingColumns


class SubEntities(RankingColumns):
    """Sub-entities. One row per sub-entity of an entity."""

    entity = Text("Requested entity.", key=True, context="request.entity")
    sub_entity = Text("Name.", key=True, nullable=True)
    validator_count = Count("Validators.")
    beaconscore = Fraction("BeaconScore, 0 to 1.", nullable=True)
    net_share = Fraction("Share of the network.", nullable=True)


SUB_ENTITIES = Endpoint(
    "sub_entities",
    route="POST /api/v2/ethereum/entity/sub-entities",
    table=SubEntities,
    parameters=(
        ChainName(),
        EntityName(),
        RollingWindow(SubEntities.last_epoch, all_time=False),
        SortOrder(("net_share", "beaconscore", "validator_count")),
    ),
    pagination=Cursor(),
    envelope=Envelope.V2,
    replaced_by="bf.v2.load_owners and bf.v2.load_operators",
)


@loader(SUB_ENTITIES)
def load_sub_entities(
    entity: str | Iterable[str],
    window: str = "30d",
    *,
    sort_by: str = "net_share",
    sort_order: str = "desc",
) -> Values:
    """Load the sub-entities of entities with their size and score, one row per sub-entity.

    One entity per call and ten rows per request. Requires a larger plan; others raise `TierTooLow`.

    Parameters
    ----------
    entity
        Name of an entity, or several; upper and lower case matter.
    window
        ``"24h"``, ``"7d"``, ``"30d"`` or ``"90d"``.
    sort_by, sort_order
        ``"net_share"``, ``"beaconscore"`` or ``"validator_count"``; ``"desc"`` or ``"asc"``.

    Returns
    -------
    polars.DataFrame
        Entity by entity, each in the requested order; see `load_entities`.

    Notes
    -----
    ``POST /api/v2/ethereum/entity/sub-entities``. The service has announced its end on 2026-12-17;
    `load_owners` and `load_operators` replace it. Never final.
    """
    return {"entity": entity, "window": window, "sort_by": sort_by, "sort_order": sort_order}
