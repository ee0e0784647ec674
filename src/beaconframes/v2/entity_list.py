"""Entities with their size and score."""

from __future__ import annotations

from beaconframes.client import Values, loader
from beaconframes.endpoint import ChainName, Cursor, Endpoint, Envelope, RollingWindow, SortOrder
from beaconframes.schema import Count, Fraction, Text
from beaconframes.v2._columns import RankingColumns


class Entities(RankingColumns):
    """Entities. One row per entity."""

    entity = Text(
        "Name; Unknown stands for all validators without an entity.", key=True, nullable=True
    )
    validator_count = Count("Validators.", optional=True)
    sub_entity_count = Count("Sub-entities.", optional=True)
    beaconscore = Fraction("BeaconScore, 0 to 1.", optional=True)
    net_share = Fraction("Share of the network.", optional=True)


ENTITIES = Endpoint(
    "entities",
    route="POST /api/v2/ethereum/entities",
    table=Entities,
    parameters=(
        ChainName(),
        RollingWindow(Entities.last_epoch, all_time=False),
        SortOrder(("net_share", "beaconscore", "validator_count", "sub_entity_count")),
    ),
    pagination=Cursor(),
    envelope=Envelope.V2,
    replaced_by="bf.v2.load_owners and bf.v2.load_operators",
)


@loader(ENTITIES)
def load_entities(
    window: str = "30d", *, sort_by: str = "net_share", sort_order: str = "desc"
) -> Values:
    """Load entities with their size and score, one row per entity.

    Ten rows per request. Requires a larger plan; others raise `TierTooLow`.

    Parameters
    ----------
    window
        ``"24h"``, ``"7d"``, ``"30d"`` or ``"90d"``.
    sort_by, sort_order
        ``"net_share"``, ``"beaconscore"``, ``"validator_count"`` or ``"sub_entity_count"``;
        ``"desc"`` or ``"asc"``.

    Returns
    -------
    polars.DataFrame
        In the requested order. The service updates the figures once an hour. If that happens
        between two pages, all pages are requested once more.

    Notes
    -----
    ``POST /api/v2/ethereum/entities``. The service has announced its end on 2026-12-17;
    `load_owners` and `load_operators` replace it. Never final.
    """
    return {"window": window, "sort_by": sort_by, "sort_order": sort_order}
