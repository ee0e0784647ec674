"""Recommended gas fees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack, overload

from beaconframes.client import Eager, Explorer, Frame, Lazy, Pandas, load
from beaconframes.endpoint import Endpoint, Envelope, Shape
from beaconframes.schema import Number, Table, UnixMillis, Wei

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class GasFees(Table):
    """Recommended gas fees. One row per response."""

    time = UnixMillis("Time of the recommendation, UTC.", key=True, wire="timestamp")
    rapid_wei = Wei("Fee per gas for inclusion within about 15 seconds.", wire="rapid")
    fast_wei = Wei("Fee per gas for inclusion within about a minute.", wire="fast")
    standard_wei = Wei("Fee per gas for inclusion within about three minutes.", wire="standard")
    slow_wei = Wei("Fee per gas for inclusion after ten minutes or more.", wire="slow")
    price = Number("Price of ether in the currency of the service; often null.", optional=True)
    price_usd = Number("Price of ether in US dollars.", wire="priceUSD", optional=True)


GAS_FEES = Endpoint(
    "gas_fees",
    route="GET /api/v1/execution/gasfees",
    table=GasFees,
    envelope=Envelope.CODE,
    shape=Shape.OBJECT,
    alias="/api/v1/execution/gasnow",
)


@overload
def load_gas_fees(**options: Unpack[Eager]) -> pl.DataFrame: ...
@overload
def load_gas_fees(**options: Unpack[Lazy]) -> pl.LazyFrame: ...
@overload
def load_gas_fees(**options: Unpack[Pandas]) -> pd.DataFrame: ...
def load_gas_fees(
    *,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
    """Load the recommended gas fees of this moment, one row.

    Parameters
    ----------
    explorer, strict, lazy, frame, max_requests
        See `load_validators`.

    Returns
    -------
    polars.DataFrame
        One row. Fees in wei per gas. Prices are floats, as the service sends them.

    Notes
    -----
    ``GET /api/v1/execution/gasfees``; on the public service, ``gasnow``. Never final.
    """
    return load(
        GAS_FEES,
        {},
        explorer=explorer,
        strict=strict,
        lazy=lazy,
        frame=frame,
        max_requests=max_requests,
    )
