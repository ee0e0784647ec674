"""Owners with their size and score."""

from __future__ import annotations

from beaconframes.client import Values, loader
from beaconframes.endpoint import (
    ChainName,
    Cursor,
    Endpoint,
    Envelope,
    OwnerOrOperator,
    RollingWindow,
    SearchText,
    SortOrder,
)
from beaconframes.v2._columns import RankingColumns


class Owners(RankingColumns):
    """Owners. One row per owner, with all fields of the service."""

    keeps_every_field = True


OWNERS = Endpoint(
    "owners",
    route="POST /api/v2/ethereum/entities/owners",
    table=Owners,
    parameters=(
        ChainName(),
        RollingWindow(Owners.last_epoch, all_time=False),
        SortOrder(("validator_count", "beaconscore", "net_share")),
        SearchText(),
        OwnerOrOperator("operator"),
    ),
    pagination=Cursor(),
    envelope=Envelope.V2,
)


@loader(OWNERS)
def load_owners(
    window: str = "30d",
    *,
    sort_by: str = "validator_count",
    sort_order: str = "desc",
    search: str | None = None,
    operator: int | str | None = None,
) -> Values:
    """Load owners with their size and score, one row per owner.

    Ten rows per request. Requires a larger plan; others raise `TierTooLow`.

    Parameters
    ----------
    window
        ``"24h"``, ``"7d"``, ``"30d"`` or ``"90d"``.
    sort_by, sort_order
        ``"validator_count"``, ``"beaconscore"`` or ``"net_share"``; ``"desc"`` or ``"asc"``.
    search
        Only names that contain this text. Default: all.
    operator
        Only owners of validators that this operator runs: an id or a path; see `operator`.

    Returns
    -------
    polars.DataFrame
        In the requested order; see `load_entities`. Every field of a record is a column, such as
        the path (``"lido/csm"``) that `owner` and `operator` take. Owners form a tree: the
        validators of one belong to those above it as well.

    Notes
    -----
    ``POST /api/v2/ethereum/entities/owners``. The shape of its response is not published: names and
    types of columns follow from the response. Never final.
    """
    return {
        "window": window,
        "sort_by": sort_by,
        "sort_order": sort_order,
        "search": search,
        "operator": operator,
    }
