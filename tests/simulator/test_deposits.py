"""Test simulated deposits: events, inclusion, signatures and senders."""

import polars as pl

from ..support.first_blocks import compute_first_blocks
from ..support.simulated_chain import ETH, KEY, assert_empty, assert_same_rows, count_rows


def test_the_first_balance_is_the_deposit(simulated):
    """The first balance of a new validator is its deposit."""
    first = simulated.balance_history.group_by("validator_index").agg(
        pl.col("epoch", "balance_gwei").first()
    ).filter(pl.col("epoch") > simulated.first)  # fmt: skip
    given = simulated.deposit_events.group_by(
        "validator_index", epoch=pl.col("slot") // 32 + 1
    ).agg(pl.col("amount_gwei").sum())
    rows = first.join(given, KEY)

    assert 4 <= rows.height == first.height
    assert_empty(rows.filter(pl.col("balance_gwei") != pl.col("amount_gwei")))


def test_a_switch_to_compounding_deposits_the_excess(simulated):
    """E16: the balance above 32 ETH becomes a deposit, processed in the same epoch."""
    rows = simulated.switch_events.with_columns(epoch=pl.col("slot") // 32).join(
        simulated.validator_epochs.select(KEY[0], "kind"), KEY[0], maintain_order="left"
    )
    later = rows.select(KEY[0], switch="epoch").join(simulated.withdrawal_events, KEY[0])
    first = simulated.deposits.join(simulated.validators, "pubkey").join(rows, KEY[0], how="semi")

    assert rows.height >= 2
    assert {"0x02"} == set(rows["kind"])
    assert 0 < rows["amount_gwei"].max() < ETH
    assert_empty(rows.filter(pl.col("slot") % 32 == 0))
    # Their balances stay far below the new maximum.
    assert_empty(later.filter(pl.col("slot") // 32 > pl.col("switch")))
    assert {"0x01"} == set(first["withdrawal_credentials"].str.slice(0, 4))
    listed = simulated.switch_to_compounding_requests.select(
        pl.col("block_slot").alias("slot"), KEY[0]
    )
    assert rows.select("slot", KEY[0]).equals(listed)


def test_included_deposits_are_those_that_move_balances(simulated):
    """Blocks include the deposits that change balances, for the same keys and amounts."""
    keys = simulated.validators.select("validator_index", "pubkey")
    expected = simulated.deposit_events.join(keys, "validator_index")

    assert_same_rows(
        simulated.slot_deposits.select("block_slot", "pubkey", "amount_gwei"),
        expected.select("slot", "pubkey", "amount_gwei"),
    )


def test_deposits_and_income_minus_withdrawals_are_the_balance(simulated):
    """Deposits plus income minus withdrawals are the balance, for chains from genesis."""
    keys = simulated.validators.select("validator_index", "pubkey")
    end = simulated.finalized * 32
    taken = simulated.slot_deposits.select("signature", slot="block_slot")
    deposits = simulated.deposits.join(keys, "pubkey").join(taken, "signature", how="left")
    moved = pl.concat(
        [
            deposits.filter(pl.col("slot").fill_null(0) < end).select(KEY[0], gwei="amount_gwei"),
            simulated.net.filter(pl.col("epoch") < simulated.finalized).select(KEY[0], "gwei"),
            # The balance is that after the first block of the epoch.
            simulated.validator_withdrawals.filter(pl.col("slot") <= end).select(
                KEY[0], gwei=-pl.col("amount_gwei")
            ),
        ]
    )
    if simulated.first:
        # Rewards before the first epoch are known only if they were withdrawn.
        late = simulated.balance_history.group_by(KEY[0]).agg(pl.col("epoch").min())
        late = late.filter(pl.col("epoch") > simulated.first)
        moved = moved.join(late, KEY[0], how="semi")
    sums = moved.group_by(KEY[0]).agg(pl.col("gwei").sum())
    balances = simulated.balance_history.filter(pl.col("epoch") == simulated.finalized)
    rows = sums.join(balances, KEY[0]).join(compute_first_blocks(simulated), KEY, how="left")
    rest = pl.col("balance_gwei") - pl.col("gwei")

    assert rows.height >= 3
    assert_empty(
        rows.filter(~rest.is_between(pl.col("low").fill_null(0), pl.col("high").fill_null(0)))
    )


def test_every_validator_has_a_deposit(simulated):
    """Each has a deposit of its own key and credentials, of 32 ETH in most cases."""
    changed = simulated.bls_changes.select(KEY[0], old="withdrawal_credentials_0x00")
    rows = simulated.validators.join(changed, KEY[0], how="left").join(
        simulated.deposits, "pubkey", suffix="_deposited"
    )

    assert simulated.validators.height == rows[KEY[0]].n_unique()
    has_switched = pl.col(KEY[0]).is_in(simulated.switch_events[KEY[0]].implode())
    now = pl.col("withdrawal_credentials")
    before = pl.when(has_switched).then("0x01" + now.str.slice(4)).otherwise(now)
    began = pl.coalesce("old", before)
    assert_empty(rows.filter(began != pl.col("withdrawal_credentials_deposited")))
    assert 0.9 < (rows["amount_gwei"] == 32 * ETH).mean() < 1


def test_deposit_events_come_before_inclusion(simulated):
    """The contract's event is in an execution block before the block that includes it."""
    rows = simulated.slot_deposits.join(simulated.deposits, "signature", suffix="_event")
    blocks = simulated.produced.select(block_number="exec_block_number", made="exec_time")

    assert simulated.slot_deposits.height == rows.height
    assert_empty(rows.filter(pl.col("time_event") >= pl.col("time")))
    found = rows.join(blocks, "block_number")
    assert rows.height == found.height
    assert_empty(found.filter(pl.col("time_event") != pl.col("made")))


def test_deposits_are_numbered_in_the_order_of_blocks(simulated):
    """Numbers start at 0 in the order of blocks; a transaction has one sender and one block."""
    rows = simulated.deposits.with_columns(
        number=pl.Series(
            [
                int.from_bytes(bytes.fromhex(text[2:]), "little")
                for text in simulated.deposits["merkletree_index"]
            ]
        )
    ).sort("number")

    assert [*range(rows.height)] == rows["number"].to_list()
    assert rows["block_number"].is_sorted()
    assert rows["time"].is_sorted()
    sent = ["tx_hash", "block_number", "tx_index", "from_address", "time"]
    transactions = rows.select(sent).unique()
    assert transactions.height == rows["tx_hash"].n_unique()
    assert transactions.height == rows.select("block_number", "tx_index").unique().height
    assert rows.height > transactions.height
    requests = simulated.deposits.join(simulated.deposit_requests, "signature", how="semi")
    included = simulated.deposits.join(simulated.slot_deposits, "signature", how="semi")
    # Each deposit in a block has a request before it; one deposit is dropped.
    assert requests.height == included.height + 1
    # E16: a transaction has a few dozen deposits at most.
    assert 24 == rows.group_by("tx_hash").len()["len"].max()


def test_call_data_has_key_credentials_and_signature(simulated):
    """The call data of a single deposit has its key, credentials and signature."""
    size = pl.len().over("tx_hash")
    assert_empty(simulated.deposits.filter((size > 1) != pl.col("tx_input").is_null()))
    for row in simulated.deposits.filter(pl.col("tx_input").is_not_null()).to_dicts():
        data = bytes.fromhex(row["tx_input"][2:])
        assert bytes.fromhex("22895118") == data[:4]
        words = data[4:]
        for place, name in enumerate(("pubkey", "withdrawal_credentials", "signature")):
            start = int.from_bytes(words[32 * place : 32 * place + 32], "big")
            length = int.from_bytes(words[start : start + 32], "big")
            assert row[name] == "0x" + words[start + 32 : start + 32 + length].hex()


def test_a_top_up_and_the_dropped_deposit_have_invalid_signatures(simulated):
    """A top-up has an invalid signature, and so does the dropped deposit."""
    rows = simulated.deposits.filter(~pl.col("valid_signature"))
    known = set(simulated.validators["pubkey"])
    included = set(simulated.slot_deposits["signature"])

    assert [False, True] == sorted(row["pubkey"] in known for row in rows.to_dicts())
    for row in rows.to_dicts():
        assert (row["pubkey"] in known) == (row["signature"] in included)
    assert not simulated.deposits["removed"].any()


def test_origins_are_unique_by_sender_key_and_validity(simulated):
    """Origins are unique by sender, key and validity; one sender has many keys."""
    keys = simulated.validators.select("pubkey", "validator_index")
    expected = simulated.deposits.join(keys, "pubkey", how="left").select(
        "from_address", "pubkey", "valid_signature", "validator_index"
    )
    found = simulated.deposit_origin

    assert expected.unique().sort(expected.columns).equals(found.sort(found.columns))
    assert 1 == found["validator_index"].null_count()
    most = found.group_by("from_address").len()["len"].max()
    assert simulated.meta["validators"] * 2 // 5 < most
    both = count_rows(found, "from_address", "pubkey").filter(pl.col("count") == 2)
    assert 1 == both.height
