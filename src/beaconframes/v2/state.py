"""The state of the network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack, overload

from beaconframes.client import Eager, Explorer, Frame, Lazy, Pandas, load
from beaconframes.endpoint import ChainName, Endpoint, Envelope, Shape
from beaconframes.schema import Table

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class State(Table):
    """The state of the network. One row, with all fields of the service."""

    keeps_every_field = True


STATE = Endpoint(
    "state",
    route="POST /api/v2/ethereum/state",
    table=State,
    parameters=(ChainName(),),
    envelope=Envelope.V2,
    shape=Shape.OBJECT,
)


@overload
def load_state(**options: Unpack[Eager]) -> pl.DataFrame: ...
@overload
def load_state(**options: Unpack[Lazy]) -> pl.LazyFrame: ...
@overload
def load_state(**options: Unpack[Pandas]) -> pd.DataFrame: ...
def load_state(
    *,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
    """Load the state of the network, one row.

    `beaconframes.load_latest_state` loads that of V1, with documented columns.

    Parameters
    ----------
    explorer, strict, lazy, frame, max_requests
        See `beaconframes.load_validators`.

    Returns
    -------
    polars.DataFrame
        Every field of the response is a column.

    Notes
    -----
    ``POST /api/v2/ethereum/state``. The shape of its response is not published: names and types of
    columns follow from the response. If the service does not have it yet, the call raises
    `NotServed`. Never final.
    """
    return load(
        STATE,
        {},
        explorer=explorer,
        strict=strict,
        lazy=lazy,
        frame=frame,
        max_requests=max_requests,
    )
