"""Test simulated accounts: queue, credentials, ether, tokens, names and gas prices."""

import json
from collections import Counter
from types import SimpleNamespace

import polars as pl

from beaconframes.simulator.derived import accounts

from ..support.simulated_chain import ETH, KEY, WEI, assert_same_rows


def test_the_queue_counts_entering_and_exiting_validators(simulated):
    """Pending validators are entering; those with a future exit epoch are exiting."""
    (row,) = simulated.validator_queue.to_dicts()
    pending = simulated.validators.filter(pl.col("status") == "pending")
    leaving = simulated.validators.filter(pl.col("exit_epoch") > simulated.latest)
    head = simulated.epochs.filter(pl.col("epoch") == simulated.latest)

    assert head["validators_count"].item() == row["validators_count"]
    assert (pending.height, leaving.height) == (row["entering_count"], row["exiting_count"])
    assert (
        pending["effective_balance_gwei"].sum(), leaving["effective_balance_gwei"].sum(),
    ) == (row["entering_balance_gwei"], row["exiting_balance_gwei"])  # fmt: skip
    assert leaving.height > 2


def test_withdrawal_credentials_have_all_validators(simulated):
    """All validators by credentials; an address has many validators, or is a contract."""
    expected = simulated.validators.select(
        credentials="withdrawal_credentials", validator_index=KEY[0], pubkey="pubkey"
    )

    assert_same_rows(simulated.withdrawal_credentials, expected)
    most = simulated.withdrawal_credentials.group_by("credentials").len()["len"].max()
    assert simulated.meta["validators"] // 3 < most


def test_ether_balances_have_withdrawals_and_block_rewards(simulated):
    """An address has at least the withdrawals and block rewards paid to it, to the wei."""
    paid = Counter()
    for credentials, gwei in simulated.validators.select(
        "withdrawal_credentials", "total_withdrawals_gwei"
    ).rows():
        if credentials[:4] != "0x00":
            paid["0x" + credentials[-40:]] += gwei * ETH
    for relayed, own, wei in simulated.execution_blocks.select(
        "relay_producer_fee_recipient", "fee_recipient", "producer_reward_wei"
    ).rows():
        paid[relayed or own] += int(wei)
    ether = simulated.address_balances.filter(pl.col("token").is_null())
    balances = dict(ether.select("address", "balance_wei").rows())

    assert ether["symbol"].null_count() == ether.height
    assert set(paid) <= set(balances)
    for address, wei in paid.items():
        own = int(balances[address]) - wei
        assert 0 <= own < 5 * WEI


def test_tokens_of_an_address_are_its_token_balances(simulated):
    """The tokens of an address are its token balances; some have many, some none."""
    tokens = simulated.address_balances.filter(pl.col("token").is_not_null())
    held = simulated.address_balances.group_by("address").agg(pl.col("token").count())

    assert tokens.drop("balance_wei").equals(simulated.token_balances)
    places = tokens["balance"].str.split(".").list.slice(1).list.join("").str.len_chars()
    assert tokens["decimals"].equals(places.cast(pl.Int64), check_names=False)
    assert tokens["symbol"].str.starts_with("sim").all()
    assert tokens["balance"].str.contains(r"^\d+(\.\d{1,16})?$").all()
    assert 400 < held["token"].max()
    assert 0 == held["token"].min()


def test_names_and_addresses_resolve_to_each_other(simulated):
    """Names and addresses resolve to each other; all names are marked as simulated."""
    rows = {row["requested"]: row for row in simulated.names.to_dicts()}
    names = {lookup for lookup in rows if lookup.endswith(".eth")}

    assert simulated.names["requested"].is_sorted()
    assert all(name.startswith("sim-") for name in names)
    for name in names:
        assert rows[rows[name]["address"]]["domain"] == rows[name]["domain"]
    assert {True, False} == {rows[name]["domain"] == name for name in names}
    assert "" in set(simulated.names["domain"])
    first = "0x" + simulated.deposit_origin.group_by("from_address").len().sort("len")[-1, 0][2:]
    assert rows["sim-0000.eth"]["address"] == first


def test_faster_gas_prices_are_higher(simulated):
    """Faster prices are higher, and none is below the newest block's base fee."""
    (row,) = simulated.gas_fees.to_dicts()
    base = simulated.produced["exec_base_fee_per_gas_wei"][-1]
    fees = [row[f"{name}_wei"] for name in ("slow", "standard", "fast", "rapid")]

    assert sorted(fees) == fees
    assert base < fees[0]
    (state,) = simulated.latest_state.to_dicts()
    prices = json.loads(state["main_currency_ticker_prices"])
    assert (state["time"], prices["USD"]["roundPrice"]) == (row["time"], row["price_usd"])


def test_ether_balances_below_and_above_2_to_the_63(chain, monkeypatch):
    """E9: the first addresses of a small chain have less wei than 2**63, later ones more."""
    rows = chain.scan("validators").head(2).collect()
    withdrawn = pl.Series("total_withdrawals_gwei", [0, 2**63 // 10**9 + 1])
    data = SimpleNamespace(
        seed=7,
        validators=rows.with_columns(
            withdrawn, withdrawal_credentials=pl.Series([f"0x01{n:062x}" for n in (1, 2)])
        ),
        scan=lambda table: chain.scan(table).limit(0),
    )
    monkeypatch.setattr(accounts.identities, "make_builders", lambda _seed: [])
    monkeypatch.setattr(accounts, "hash_number", lambda *_: 1)

    balances = accounts._build_ether_balances(data, {})

    assert [1, (2**63 // 10**9 + 1) * 10**9 + 1] == [*map(int, balances["balance_wei"])]
