"""Statistics of the liquid-staking pool."""

from __future__ import annotations

from beaconframes.client import Values, loader
from beaconframes.endpoint import Endpoint, Shape
from beaconframes.schema import Count, Fraction, Number, Table, Text, Units, UnixTime, Wei


class PoolStats(Table):
    """Statistics of the pool protocol. One row per response."""

    claim_interval_time_start = UnixTime("Start of the current claim interval, UTC.", key=True)
    claim_interval_time = Text(
        "Length of a claim interval, as hours:minutes:seconds.", nullable=True
    )
    rpl_price_wei = Wei("Price of one RPL.", wire="rpl_price")
    reth_exchange_rate = Number("Ether per rETH.")
    reth_apr = Fraction("Yearly rate of rETH, an estimate of the service.", nullable=True)
    reth_supply_base_units = Units("rETH in existence, in 10**-18 rETH.", wire="reth_supply")
    effective_rpl_staked_base_units = Units(
        "Effective RPL stake, in 10**-18 RPL.", wire="effective_rpl_staked"
    )
    node_operator_rewards_base_units = Units(
        "RPL rewards of node operators in the interval, in 10**-18 RPL.",
        wire="node_operator_rewards",
        nullable=True,
    )
    current_node_fee = Fraction("Share of rewards that node operators keep.")
    current_node_demand_wei = Wei(
        "Ether waiting for nodes; negative if nodes wait for ether.",
        wire="current_node_demand",
        nullable=True,
    )
    total_eth_staking_wei = Wei("Staked ether of the pool.", wire="total_eth_staking")
    total_eth_balance_wei = Wei("Total ether of the pool.", wire="total_eth_balance")
    node_count = Count("Nodes.")
    minipool_count = Count("Minipools: validators of the pool.")
    odao_member_count = Count("Members of the oracle committee.")


POOL_STATS = Endpoint(
    "pool_stats",
    route="GET /api/v1/poolprotocol/stats",
    table=PoolStats,
    shape=Shape.OBJECT,
    alias="/api/v1/rocketpool/stats",
)


@loader(POOL_STATS)
def load_pool_stats() -> Values:
    """Load the statistics of the liquid-staking pool, one row.

    Returns
    -------
    polars.DataFrame
        One row. Ether in wei. Amounts of other tokens (``_base_units``) are in units of 10**-18
        tokens, and are not ether.

    Notes
    -----
    ``GET /api/v1/poolprotocol/stats``; on the public service, ``rocketpool/stats``. The service
    updates it every few minutes. Never final.
    """
    return {}
