"""Operators with their size and score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack, overload

from beaconframes.client import Eager, Explorer, Frame, Lazy, Pandas, load
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

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Operators(RankingColumns):
    """Operators. One row per operator, with all fields of the service."""

    keeps_every_field = True


OPERATORS = Endpoint(
    "operators",
    route="POST /api/v2/ethereum/entities/operators",
    table=Operators,
    parameters=(
        ChainName(),
        RollingWindow(Operators.last_epoch, finalized=True, all_time=False),
        SortOrder(("validator_count", "beaconscore", "net_share")),
        SearchText(),
        OwnerOrOperator("owner"),
    ),
    pagination=Cursor(),
    envelope=Envelope.V2,
)


@overload
def load_operators(
    window: str = "30d",
    *,
    sort_by: str = "validator_count",
    sort_order: str = "desc",
    search: str | None = None,
    owner: int | str | None = None,
    **options: Unpack[Eager],
) -> pl.DataFrame: ...
@overload
def load_operators(
    window: str = "30d",
    *,
    sort_by: str = "validator_count",
    sort_order: str = "desc",
    search: str | None = None,
    owner: int | str | None = None,
    **options: Unpack[Lazy],
) -> pl.LazyFrame: ...
@overload
def load_operators(
    window: str = "30d",
    *,
    sort_by: str = "validator_count",
    sort_order: str = "desc",
    search: str | None = None,
    owner: int | str | None = None,
    **options: Unpack[Pandas],
) -> pd.DataFrame: ...
def load_operators(
    window: str = "30d",
    *,
    sort_by: str = "validator_count",
    sort_order: str = "desc",
    search: str | None = None,
    owner: int | str | None = None,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
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
    explorer, strict, lazy, frame, max_requests
        See `beaconframes.load_validators`.

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
    return load(
        OPERATORS,
        {
            "window": window,
            "sort_by": sort_by,
            "sort_order": sort_order,
            "search": search,
            "owner": owner,
        },
        explorer=explorer,
        strict=strict,
        lazy=lazy,
        frame=frame,
        max_requests=max_requests,
    )
