"""Operators with their size and score."""

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


class Operators(RankingColumns):
    """Operators. One row per operator, with all fields of the service."""

    keeps_every_field = True


OPERATORS = Endpoint(
    "operators",
    route="POST /api/v2/ethereum/entities/operators",
    table=Operators,
    parameters=(
        ChainName(),
        RollingWindow(Operators.last_epoch, all_time=False),
        SortOrder(("validator_count", "beaconscore", "net_share")),
        SearchText(),
        OwnerOrOperator("owner"),
    ),
    pagination=Cursor(),
    envelope=Envelope.V2,
)


@loader(OPERATORS)
def load_operators(
    window: str = "30d",
    *,
    sort_by: str = "validator_count",
    sort_order: str = "desc",
    search: str | None = None,
    owner: int | str | None = None,
) -> Values:
    """Load operators with their size and score, one row per operator.

    Ten rows per request. Requires a larger plan; others raise `TierTooLow`.

    Parameters
    ----------
    window
        ``"24h"``, ``"7d"``, ``"30d"`` or ``"90d"``.
    sort_by, sort_order
        ``"validator_count"``, ``"beaconscore"`` or ``"net_share"``; ``"desc"`` or ``"asc"``.
    search
        Only names that contain this text. Default: all.
    owner
        Only operators that run validators of this owner: an id or a path; see `owner`.

    Returns
    -------
    polars.DataFrame
        In the requested order; see `load_entities`. Every field of a record is a column, such as
        the path (``"lido/csm"``) that `owner` and `operator` take. Operators form a tree: the
        validators of one belong to those above it as well.

    Notes
    -----
    ``POST /api/v2/ethereum/entities/operators``. The shape of its response is not published: names
    and types of columns follow from the response. Never final.
    """
    return {
        "window": window,
        "sort_by": sort_by,
        "sort_order": sort_order,
        "search": search,
        "owner": owner,
    }
