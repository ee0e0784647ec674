"""Addresses of the execution layer, with ether, tokens and names; gas fees; validator queue."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import polars as pl

from beaconframes.derive.validator_tables import is_active
from beaconframes.simulator import identities
from beaconframes.simulator.hex_text import hash_number
from beaconframes.v1.address_balances import AddressBalances
from beaconframes.v1.gas_fees import GasFees
from beaconframes.v1.names import Names
from beaconframes.v1.token_balances import TokenBalances
from beaconframes.v1.validator_queue import ValidatorQueue

if TYPE_CHECKING:
    from beaconframes.simulator.derived.chain_data import ChainData

_WEI_PER_ETH: Final = 10**18
_WEI_PER_GWEI: Final = 10**9
_TOKENS: Final = ("simUSD", "simRPL", "simETH", "simGOLD")
_AIRDROPS: Final = 430  # tokens of the largest operator, so that its list has several pages
_DIGITS: Final = 16  # of token balances, as on the service


def write_tables(data: ChainData) -> None:
    """Write the tables of addresses, gas fees and queue."""
    validators = data.validators
    addresses = identities.make_operator_addresses(data.seed, validators.height)
    operators = dict(zip(identities.find_operators(validators.height), addresses, strict=True))
    ether = _build_ether_balances(data, operators)
    tokens = _build_token_balances(data, operators)
    data.add(TokenBalances, tokens)
    data.add(
        AddressBalances,
        pl.concat([ether, tokens], how="diagonal").sort("address", "token", nulls_last=True),
    )
    data.add(Names, _build_names(operators))
    data.add(GasFees, _build_gas_fees(data))
    data.add(ValidatorQueue, _build_validator_queue(data))


def format_decimal(units: int, digits: int) -> str:
    """Return *units* of 10**-digits as an exact decimal text."""
    whole, rest = divmod(units, 10**digits)
    return f"{whole}.{rest:0{digits}d}".rstrip("0").rstrip(".")


def _build_ether_balances(data: ChainData, operators: dict[int, str]) -> pl.DataFrame:
    """Return ether balances: all payments to an address, and a small initial balance."""
    seed = data.seed
    paid: dict[str, int] = dict.fromkeys(operators.values(), 0)
    paid |= {builder.address: 0 for builder in identities.make_builders(seed)}
    payable = pl.col("withdrawal_credentials").str.slice(0, 4) != "0x00"
    for credentials, gwei in data.validators.filter(payable).select(
        "withdrawal_credentials", "total_withdrawals_gwei"
    ).rows():  # fmt: skip
        address = "0x" + credentials[-40:]
        paid[address] = paid.get(address, 0) + gwei * _WEI_PER_GWEI
    recipient = pl.coalesce("relay_producer_fee_recipient", "fee_recipient")
    blocks = data.scan("execution_blocks").group_by(recipient.alias("address"))
    for address, wei in blocks.agg(pl.col("producer_reward_wei").sum()).collect().rows():
        paid[address] = paid.get(address, 0) + int(wei)
    initial = {address: hash_number(seed, f"own {address}", 5 * _WEI_PER_ETH) for address in paid}
    balances = [wei + initial[address] for address, wei in paid.items()]
    # A list of integers below and above 2**63 has no common type unless it is stated.
    return pl.DataFrame(
        {"address": list(paid), "balance_wei": pl.Series(balances, dtype=pl.Int128)}
    ).with_columns(pl.col("balance_wei").cast(pl.Decimal(28, 0)))


def _build_token_balances(data: ChainData, operators: dict[int, str]) -> pl.DataFrame:
    """Return token balances, one row per address and token; many addresses have none."""
    seed = data.seed
    contracts = [(symbol, identities.make_address(seed, symbol)) for symbol in _TOKENS]
    rows = []
    for operator, address in operators.items():
        tokens = contracts[: 1 + operator % len(contracts)] if operator % 3 != 1 else []
        if operator == identities.LARGEST:
            drops = [f"simDROP{count:03d}" for count in range(_AIRDROPS)]
            tokens = [
                *contracts,
                *((symbol, identities.make_address(seed, symbol)) for symbol in drops),
            ]
        for symbol, contract in tokens:
            units = 1 + hash_number(seed, f"{symbol} of {address}", 10 ** (_DIGITS + 3))
            rows.append((address, contract, symbol, format_decimal(units, _DIGITS)))
    schema = TokenBalances.schema()
    names = [name for name in schema if name != TokenBalances.decimals.name]
    table = pl.DataFrame(rows, schema=names, orient="row")
    return table.with_columns(decimals=TokenBalances.decimals.count()).sort("address", "token")


def _build_names(operators: dict[int, str]) -> pl.DataFrame:
    """Return names and reverse lookups, one row per name and per address with a name.

    The largest operator has a second name, which is not its primary name. The next operator has no
    primary name.
    """
    rows: dict[str, tuple[str, str]] = {}
    for operator, address in sorted(operators.items()):
        if operator % 3 and operator > 1:
            continue
        name = f"sim-{operator:04d}.eth"
        domain = "" if operator == 1 else name
        rows[name] = rows[address] = address, domain
    largest = operators[identities.LARGEST]
    rows["sim-lighthouse.eth"] = rows[largest]
    lookups = sorted(rows)
    return pl.DataFrame([(name, *rows[name]) for name in lookups], Names.schema(), orient="row")


def _build_gas_fees(data: ChainData) -> pl.DataFrame:
    """Return gas prices after the newest block, one row."""
    state = data.scan("latest_state").collect().row(0, named=True)
    newest = data.blocks.filter(pl.col("exec_block_number").is_not_null()).tail(1)
    (base,) = (
        data.scan("blocks").filter(status="proposed", slot=newest["slot"].item())
        .select("exec_base_fee_per_gas_wei").collect().to_series().to_list()
    )  # fmt: skip
    base = int(base)
    prices = json.loads(state["main_currency_ticker_prices"])
    return pl.DataFrame(
        {
            "rapid_wei": [base * 3 // 2 + 2 * _WEI_PER_GWEI],
            "fast_wei": [base * 5 // 4 + _WEI_PER_GWEI],
            "standard_wei": [base * 9 // 8 + _WEI_PER_GWEI // 2],
            "slow_wei": [base + _WEI_PER_GWEI // 10],
            "price": [state["main_currency_ticker_price"]],
            "price_usd": [float(prices["USD"]["roundPrice"])],
        }
    ).with_columns(time=data.chain.time_expr("slot", pl.lit(data.head.slot)))


def _build_validator_queue(data: ChainData) -> pl.DataFrame:
    """Return the validator queue, one row."""
    epoch = data.head.epoch
    entering = pl.col("status") == "pending"
    exiting = pl.col("exit_epoch") > epoch
    stake = pl.col("effective_balance_gwei")
    return data.validators.select(
        validators_count=is_active(epoch).sum(),
        entering_count=entering.sum(),
        exiting_count=exiting.sum(),
        entering_balance_gwei=stake.filter(entering).sum(),
        exiting_balance_gwei=stake.filter(exiting).sum(),
    )
