"""Recommended gas fees."""

from __future__ import annotations

from beaconframes.client import Values, loader
from beaconframes.endpoint import Endpoint, Envelope, Shape
from beaconframes.schema import Number, Table, UnixMillis, Wei


class GasFees(Table):
    """Recommended gas fees. One row per response."""

    time = UnixMillis("Time of the recommendation, UTC.", key=True, wire="timestamp")
    rapid_wei = Wei("Fee per gas for inclusion within about 15 seconds.", wire="rapid", minimum=0)
    fast_wei = Wei("Fee per gas for inclusion within about a minute.", wire="fast", minimum=0)
    standard_wei = Wei(
        "Fee per gas for inclusion within about three minutes.", wire="standard", minimum=0
    )
    slow_wei = Wei("Fee per gas for inclusion after ten minutes or more.", wire="slow", minimum=0)
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


@loader(GAS_FEES)
def load_gas_fees() -> Values:
    """Load the recommended gas fees of this moment, one row.

    Returns
    -------
    polars.DataFrame
        One row. Fees in wei per gas. Prices are floats, as the service sends them.

    Notes
    -----
    ``GET /api/v1/execution/gasfees``; on the public service, ``gasnow``. Never final.
    """
    return {}
