"""Addresses of the execution layer: ether, tokens, names; whose validators pay to them; gas."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import polars as pl

from beaconframes.simulator import identities
from beaconframes.simulator.derived.source import number
from beaconframes.v1.address_balances import AddressBalances
from beaconframes.v1.gas_fees import GasFees
from beaconframes.v1.names import Names
from beaconframes.v1.token_balances import TokenBalances
from beaconframes.v1.validator_queue import ValidatorQueue
from beaconframes.v1.withdrawal_credentials import WithdrawalCredentials

if TYPE_CHECKING:
    from beaconframes.simulator.derived.source import Source

_WEI: Final = 10**18  # in an ether
_GWEI: Final = 10**9  # wei in it
_TOKENS: Final = ("simUSD", "simRPL", "simETH", "simGOLD")
_AIRDROPS: Final = 430  # that the largest operator got, so that its list has several pages
_PLACES: Final = 16  # of a token's balance, as the service rounds it


def write(source: Source, produced: pl.DataFrame) -> None:
    """Write addresses and readings, ether from what the *produced* blocks and validators paid."""
    validators = source.validators
    owners = identities.operator_addresses(source.seed, validators.height)
    operators = dict(zip(identities.operators(validators.height), owners, strict=True))
    ether = _ether(source, operators, produced)
    tokens = _tokens(source, operators)
    source.add(TokenBalances, tokens)
    source.add(
        AddressBalances,
        pl.concat([ether, tokens], how="diagonal").sort("address", "token", nulls_last=True),
    )
    source.add(Names, _names(operators))
    source.add(
        WithdrawalCredentials,
        validators.select("validator_index", "pubkey", credentials="withdrawal_credentials").sort(
            "credentials", "validator_index"
        ),
    )
    source.add(GasFees, _gas_fees(source))
    source.add(ValidatorQueue, _queue(source))


def decimal(units: int, places: int) -> str:
    """Return units of 10**-places as an exact decimal text."""
    whole, rest = divmod(units, 10**places)
    return f"{whole}.{rest:0{places}d}".rstrip("0").rstrip(".")


def _ether(source: Source, operators: dict[int, str], produced: pl.DataFrame) -> pl.DataFrame:
    """Return what addresses have: all that they were paid, and a little of their own."""
    seed = source.seed
    paid: dict[str, int] = dict.fromkeys(operators.values(), 0)
    paid |= {builder.address: 0 for builder in identities.builders(seed)}
    payable = pl.col("withdrawal_credentials").str.slice(0, 4) != "0x00"
    for credentials, gwei in source.validators.filter(payable).select(
        "withdrawal_credentials", "total_withdrawals_gwei"
    ).rows():  # fmt: skip
        address = "0x" + credentials[-40:]
        paid[address] = paid.get(address, 0) + gwei * _GWEI
    recipient = pl.coalesce("relay_producer_fee_recipient", "fee_recipient")
    rewards = produced.group_by(recipient.alias("address")).agg(pl.col("producer_reward_wei").sum())
    for address, wei in rewards.rows():
        paid[address] = paid.get(address, 0) + int(wei)
    own = {address: number(seed, f"own {address}", 5 * _WEI) for address in paid}
    return pl.DataFrame(
        {
            "address": list(paid),
            "balance": [decimal(wei + own[address], 18) for address, wei in paid.items()],
        }
    )


def _tokens(source: Source, operators: dict[int, str]) -> pl.DataFrame:
    """Return the tokens of addresses. One row per address and token; many addresses have none."""
    seed = source.seed
    contracts = [(symbol, identities.address(seed, symbol)) for symbol in _TOKENS]
    rows = []
    for owner, address in operators.items():
        held = contracts[: 1 + owner % len(contracts)] if owner % 3 != 1 else []
        if owner == identities.LARGEST:
            drops = [f"simDROP{turn:03d}" for turn in range(_AIRDROPS)]
            held = [*contracts, *((symbol, identities.address(seed, symbol)) for symbol in drops)]
        for symbol, contract in held:
            units = 1 + number(seed, f"{symbol} of {address}", 10 ** (_PLACES + 3))
            rows.append((address, contract, symbol, decimal(units, _PLACES)))
    schema = TokenBalances.schema()
    return pl.DataFrame(rows, schema=schema, orient="row").sort("address", "token")


def _names(operators: dict[int, str]) -> pl.DataFrame:
    """Return names of operators and back. One row per name, and per address that has one.

    The largest has a second name, which is not its primary one; the next has no primary name.
    """
    rows: dict[str, tuple[str, str]] = {}
    for owner, address in sorted(operators.items()):
        if owner % 3 and owner > 1:
            continue
        name = f"sim-{owner:04d}.eth"
        domain = "" if owner == 1 else name
        rows[name] = rows[address] = address, domain
    largest = operators[identities.LARGEST]
    rows["sim-lighthouse.eth"] = rows[largest]
    asked = sorted(rows)
    return pl.DataFrame([(name, *rows[name]) for name in asked], Names.schema(), orient="row")


def _gas_fees(source: Source) -> pl.DataFrame:
    """Return what to pay for gas after the newest block."""
    state = source.scan("latest_state").collect().row(0, named=True)
    newest = source.blocks.filter(pl.col("exec_block_number").is_not_null()).tail(1)
    (base,) = (
        source.scan("blocks").filter(status="proposed", slot=newest["slot"].item())
        .select("exec_base_fee_per_gas_wei").collect().to_series().to_list()
    )  # fmt: skip
    base = int(base)
    prices = json.loads(state["main_currency_ticker_prices"])
    return pl.DataFrame(
        {
            "rapid_wei": [base * 3 // 2 + 2 * _GWEI],
            "fast_wei": [base * 5 // 4 + _GWEI],
            "standard_wei": [base * 9 // 8 + _GWEI // 2],
            "slow_wei": [base + _GWEI // 10],
            "price": [state["main_currency_ticker_price"]],
            "price_usd": [float(prices["USD"]["roundPrice"])],
        }
    ).with_columns(time=source.chain.time_expr("slot", pl.lit(source.head.slot)))


def _queue(source: Source) -> pl.DataFrame:
    """Return who waits to become active, and who to leave."""
    now = source.head.epoch
    entering = pl.col("status") == "pending"
    leaving = pl.col("exit_epoch") > now
    active = (pl.col("activation_epoch") <= now) & (pl.col("exit_epoch").fill_null(now + 1) > now)
    stake = pl.col("effective_balance_gwei")
    return source.validators.select(
        validators_count=active.sum(),
        entering_count=entering.sum(),
        exiting_count=leaving.sum(),
        entering_balance_gwei=stake.filter(entering).sum(),
        exiting_balance_gwei=stake.filter(leaving).sum(),
    )
