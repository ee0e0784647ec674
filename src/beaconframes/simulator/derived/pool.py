"""The liquid-staking pool: fictional contracts of existing validators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from beaconframes.simulator import identities
from beaconframes.simulator.hex_text import hash_number
from beaconframes.v1.pool_stats import PoolStats
from beaconframes.v1.pool_validators import PoolValidators

if TYPE_CHECKING:
    from beaconframes.simulator.derived.chain_data import ChainData

_BASE_UNITS: Final = 10**18
_INTERVAL: Final = 672 * 3600  # seconds
_RPL_PRICE: Final = 2_150_000_000_000_000  # wei
_NODE_FEE: Final = 0.14
_STAKE: Final = 32 * _BASE_UNITS
_ZONES: Final = ("Simulated/Lighthouse", "Simulated/Harbour", "")
_EXCHANGE_RATE: Final = 1.1  # ether for one rETH


def write_tables(data: ChainData) -> None:
    """Write the pool's validators and its statistics."""
    rows = build_pool_validators(data)
    data.add(PoolValidators, rows)
    data.add(PoolStats, build_pool_stats(data, rows))


def build_pool_validators(data: ChainData) -> pl.DataFrame:
    """Return minipools, one row per validator whose operator is a node of the pool."""
    seed, count = data.seed, data.validators.height
    operators = identities.find_operators(count)
    addresses = identities.make_operator_addresses(seed, count)
    rows = []
    for validator in data.validators.iter_rows(named=True):
        index = validator["validator_index"]
        contract = "0x" + validator["withdrawal_credentials"][-40:]
        if contract != identities.make_address(seed, f"minipool {index}"):
            continue
        rows.append(
            {
                "validator_index": index,
                "minipool_address": contract,
                "node_address": addresses[index],
                **_make_contract(data, validator),
                **_make_node(seed, operators[index], operators.count(operators[index])),
            }
        )
    return pl.DataFrame(rows, schema=PoolValidators.schema())


def _make_contract(data: ChainData, validator: dict[str, Any]) -> dict[str, Any]:
    index, epoch = validator["validator_index"], data.head.epoch
    activated, exited = (
        validator[name] is not None and validator[name] <= epoch
        for name in ("activation_epoch", "exit_epoch")
    )
    status = "Withdrawable" if exited else "Staking" if activated else "Prelaunch"
    name = "exit_epoch" if exited else "activation_epoch" if activated else None
    since = None if name is None else validator[name]
    is_half = index % 2 == 0
    return {
        "minipool_status": status,
        "minipool_status_time": None if since is None else data.chain.time_of("epoch", since),
        "minipool_deposit_type": "Half" if is_half else "Variable",
        "minipool_node_fee": _NODE_FEE,
        "version": 3,
        "is_vacant": False,
        "penalty_count": int(validator["slashed"]),
        "node_deposit_balance_wei": (16 if is_half else 8) * _BASE_UNITS,
        "user_deposit_balance_wei": (16 if is_half else 24) * _BASE_UNITS,
        "node_refund_balance_wei": 0,
    }


def _make_node(seed: int, operator: int, validators: int) -> dict[str, Any]:
    """Return stake and rewards of a node: RPL for a tenth of the users' ether and more."""
    min_stake = validators * 2 * _BASE_UNITS * _BASE_UNITS // _RPL_PRICE
    max_stake = validators * 24 * _BASE_UNITS * _BASE_UNITS // _RPL_PRICE
    stake = min_stake // 2 + hash_number(seed, f"stake {operator}", max_stake)
    in_smoothing_pool = operator % 8 == 1
    return {
        "node_deposit_credit_wei": hash_number(seed, f"credit {operator}", 2) * 8 * _BASE_UNITS,
        "node_timezone_location": _ZONES[operator // 4 % len(_ZONES)],
        "node_rpl_stake_base_units": stake,
        "node_min_rpl_stake_base_units": min_stake,
        "node_max_rpl_stake_base_units": max_stake,
        "effective_rpl_stake_base_units": min(stake, max_stake) if stake >= min_stake else 0,
        "rpl_cumulative_rewards_base_units": stake // 40,
        "unclaimed_rpl_rewards_base_units": stake // 800,
        "smoothing_pool_opted_in": in_smoothing_pool,
        "claimed_smoothing_pool_wei": hash_number(seed, f"claimed {operator}", _BASE_UNITS)
        * in_smoothing_pool,
        "unclaimed_smoothing_pool_wei": hash_number(seed, f"unclaimed {operator}", _BASE_UNITS)
        * in_smoothing_pool,
    }


def build_pool_stats(data: ChainData, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the pool's statistics, sums over its minipools and nodes; one row."""
    chain = data.chain
    interval_start = data.head.slot * chain.seconds_per_slot // _INTERVAL * _INTERVAL
    nodes = rows.unique("node_address", keep="first", maintain_order=True)
    staking = rows.filter(minipool_status="Staking").height * _STAKE
    unassigned = hash_number(data.seed, "spare", 2_000) * _BASE_UNITS
    index = data.scan("yield_index").select("apr").collect()["apr"]
    effective = sum(map(int, nodes["effective_rpl_stake_base_units"].to_list()))
    rate = _EXCHANGE_RATE
    row = {
        "claim_interval_time_start": chain.time_of(
            "slot", interval_start // chain.seconds_per_slot
        ),
        "claim_interval_time": "672:00:00",
        "rpl_price_wei": _RPL_PRICE,
        "reth_exchange_rate": rate,
        # The node operators get a share.
        "reth_apr": float(index[-1] if len(index) else 0.03) * (1 - _NODE_FEE),
        "reth_supply_base_units": (staking + unassigned) * 10 // 11,
        "effective_rpl_staked_base_units": effective,
        "node_operator_rewards_base_units": effective // 240,
        "current_node_fee": _NODE_FEE,
        "current_node_demand_wei": unassigned
        - rows.filter(minipool_status="Prelaunch").height * _STAKE,
        "total_eth_staking_wei": staking,
        "total_eth_balance_wei": staking + unassigned,
        "node_count": nodes.height,
        "minipool_count": rows.height,
        "odao_member_count": 12,
    }
    return pl.DataFrame([row], schema=PoolStats.schema())
