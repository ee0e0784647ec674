"""The liquid-staking pool: its contracts, made up around validators that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from beaconframes.simulator import identities
from beaconframes.simulator.derived.source import number
from beaconframes.v1.pool_stats import PoolStats
from beaconframes.v1.pool_validators import PoolValidators

if TYPE_CHECKING:
    from beaconframes.simulator.derived.source import Source

_UNITS: Final = 10**18
_INTERVAL: Final = 672 * 3600  # seconds
_RPL_PRICE: Final = 2_150_000_000_000_000  # wei
_NODE_FEE: Final = 0.14
_STAKE: Final = 32 * _UNITS
_ZONES: Final = ("Simulated/Lighthouse", "Simulated/Harbour", "")
_FIRST_YEARS: Final = 1.1  # ether for one rETH, with what the pool earned before


def write(source: Source) -> None:
    """Write the pool's validators, and its statistics from them."""
    rows = pool_validators(source)
    source.add(PoolValidators, rows)
    source.add(PoolStats, pool_stats(source, rows))


def pool_validators(source: Source) -> pl.DataFrame:
    """Return the minipools. One row per validator whose operator is a node of the pool."""
    seed, count = source.seed, source.validators.height
    operators = identities.operators(count)
    owners = identities.operator_addresses(seed, count)
    rows = []
    for who in source.validators.iter_rows(named=True):
        index = who["validator_index"]
        contract = "0x" + who["withdrawal_credentials"][-40:]
        if contract != identities.address(seed, f"minipool {index}"):
            continue
        rows.append(
            {
                "validator_index": index,
                "minipool_address": contract,
                "node_address": owners[index],
                **_contract(source, who),
                **_node(seed, operators[index], operators.count(operators[index])),
            }
        )
    return pl.DataFrame(rows, schema=PoolValidators.schema())


def _contract(source: Source, who: dict[str, Any]) -> dict[str, Any]:
    index, now = who["validator_index"], source.head.epoch
    began, gone = (
        epoch is not None and epoch <= now for epoch in (who["activation_epoch"], who["exit_epoch"])
    )
    status = "Withdrawable" if gone else "Staking" if began else "Prelaunch"
    since = who["exit_epoch"] if gone else who["activation_epoch"] if began else None
    half = index % 2 == 0
    return {
        "minipool_status": status,
        "minipool_status_time": None if since is None else source.chain.time_of("epoch", since),
        "minipool_deposit_type": "Half" if half else "Variable",
        "minipool_node_fee": _NODE_FEE,
        "version": 3,
        "is_vacant": False,
        "penalty_count": int(who["slashed"]),
        "node_deposit_balance_wei": (16 if half else 8) * _UNITS,
        "user_deposit_balance_wei": (16 if half else 24) * _UNITS,
        "node_refund_balance_wei": 0,
    }


def _node(seed: int, operator: int, validators: int) -> dict[str, Any]:
    """Return what a node has at stake: RPL for a tenth of the users' ether and more."""
    least = validators * 2 * _UNITS * _UNITS // _RPL_PRICE
    most = validators * 24 * _UNITS * _UNITS // _RPL_PRICE
    stake = least // 2 + number(seed, f"stake {operator}", most)
    pooled = operator % 8 == 1
    return {
        "node_deposit_credit_wei": number(seed, f"credit {operator}", 2) * 8 * _UNITS,
        "node_timezone_location": _ZONES[operator // 4 % len(_ZONES)],
        "node_rpl_stake_base_units": stake,
        "node_min_rpl_stake_base_units": least,
        "node_max_rpl_stake_base_units": most,
        "effective_rpl_stake_base_units": min(stake, most) if stake >= least else 0,
        "rpl_cumulative_rewards_base_units": stake // 40,
        "unclaimed_rpl_rewards_base_units": stake // 800,
        "smoothing_pool_opted_in": pooled,
        "claimed_smoothing_pool_wei": number(seed, f"claimed {operator}", _UNITS) * pooled,
        "unclaimed_smoothing_pool_wei": number(seed, f"unclaimed {operator}", _UNITS) * pooled,
    }


def pool_stats(source: Source, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the pool's statistics: sums over its minipools and nodes. One row."""
    chain = source.chain
    passed = source.head.slot * chain.seconds_per_slot // _INTERVAL * _INTERVAL
    nodes = rows.unique("node_address", keep="first", maintain_order=True)
    staking = rows.filter(minipool_status="Staking").height * _STAKE
    spare = number(source.seed, "spare", 2_000) * _UNITS
    index = source.scan("yield_index").select("apr").collect()["apr"]
    effective = sum(map(int, nodes["effective_rpl_stake_base_units"].to_list()))
    rate = _FIRST_YEARS
    row = {
        "claim_interval_time_start": chain.time_of("slot", passed // chain.seconds_per_slot),
        "claim_interval_time": "672:00:00",
        "rpl_price_wei": _RPL_PRICE,
        "reth_exchange_rate": rate,
        # The node operators keep their part.
        "reth_apr": float(index[-1] if len(index) else 0.03) * (1 - _NODE_FEE),
        "reth_supply_base_units": (staking + spare) * 10 // 11,
        "effective_rpl_staked_base_units": effective,
        "node_operator_rewards_base_units": effective // 240,
        "current_node_fee": _NODE_FEE,
        "current_node_demand_wei": spare - rows.filter(minipool_status="Prelaunch").height * _STAKE,
        "total_eth_staking_wei": staking,
        "total_eth_balance_wei": staking + spare,
        "node_count": nodes.height,
        "minipool_count": rows.height,
        "odao_member_count": 12,
    }
    return pl.DataFrame([row], schema=PoolStats.schema())
