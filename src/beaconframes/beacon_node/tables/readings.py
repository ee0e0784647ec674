"""Readings of an execution node: gas fees, and balances of addresses."""

from __future__ import annotations

from statistics import median_low
from typing import TYPE_CHECKING, Final

import polars as pl

from beaconframes.beacon_node.client.signed_block import LARGEST_WEI
from beaconframes.beacon_node.execution.records import FeeHistory, Quantity, RpcBlock, to_int
from beaconframes.beacon_node.tables.declaration import EXECUTION, LOAD, NodeTable
from beaconframes.beacon_node.tables.frames import build_frame
from beaconframes.errors import ResponseError
from beaconframes.v1.address_balances import AddressBalances
from beaconframes.v1.gas_fees import GasFees

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beaconframes.beacon_node.execution.api import Call, ExecutionApi
    from beaconframes.calendar import Chain

FEE_BLOCKS: Final = 20
"""Blocks whose priority fees are the basis of recommended fees."""
FEE_PERCENTILES: Final = {"slow_wei": 10, "standard_wei": 35, "fast_wei": 60, "rapid_wei": 90}
"""Percentile of the priority fees of a block, by gas, for each recommended fee."""


def read_gas_fees(api: ExecutionApi, chain: Chain) -> pl.DataFrame:
    """Return recommended gas fees, one row.

    Each is the base fee of the next block, plus the median, over the last blocks with
    transactions, of a percentile of their priority fees. Prices are null.
    """
    percentiles = sorted(FEE_PERCENTILES.values())
    calls: list[Call] = [
        ("eth_feeHistory", [hex(FEE_BLOCKS), "latest", percentiles]),
        ("eth_getBlockByNumber", ["latest", False]),
    ]
    answers = api.call(calls)
    history = api.parse(answers[0], FeeHistory, "eth_feeHistory")
    block = api.parse(answers[1], RpcBlock, "eth_getBlockByNumber latest")
    next_base_fee = to_int(history.base_fee_per_gas[-1]) if history.base_fee_per_gas else 0
    rewards = zip(history.gas_used_ratio, history.reward or (), strict=False)
    paid = [[to_int(fee) for fee in fees] for ratio, fees in rewards if ratio > 0]
    columns: dict[str, list[int]] = {"time": [to_int(block.timestamp) * 1000]}
    for name, percentile in FEE_PERCENTILES.items():
        place = percentiles.index(percentile)
        if any(len(row) <= place for row in paid):
            raise ResponseError(f"eth_feeHistory has a block without its percentile {percentile}")
        fees = [row[place] for row in paid]
        columns[name] = [next_base_fee + (median_low(fees) if fees else 0)]
    return build_frame(GasFees, columns, chain)


def read_address_balances(
    api: ExecutionApi, addresses: Iterable[str], chain: Chain
) -> pl.DataFrame:
    """Return the ether of addresses at the newest block, one row per address.

    Tokens are left out: a node has no list of the tokens of an address.
    """
    names = list(dict.fromkeys(address.lower() for address in addresses))
    calls = [("eth_getBalance", [name, "latest"]) for name in names]
    amounts = [answer and to_int(answer) for answer in api.read_each(calls, Quantity)]
    for name, amount in zip(names, amounts, strict=True):
        if amount is None:
            raise ResponseError(f"the execution node states no balance of {name}")
        if amount > LARGEST_WEI:
            raise ResponseError(
                f"{name} has {amount} wei, more than a column of wei can hold",
                hint="Leave out the accounts of a development chain",
            )
    balances = pl.Series("balance_wei", amounts, dtype=pl.Int128)
    return build_frame(AddressBalances, {"address": names, "balance_wei": balances}, chain)


TABLES: Final = tuple(NodeTable(each, LOAD, EXECUTION) for each in (GasFees, AddressBalances))
