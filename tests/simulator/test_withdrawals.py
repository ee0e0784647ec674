"""Test simulated withdrawals: the sweep, requests and BLS changes."""

from bisect import bisect_left

import polars as pl

from ..support.simulated_chain import ETH, KEY, assert_empty, assert_same_rows


def compute_withdrawable(simulated):
    """Return the amount that each validator can withdraw in each epoch, before its first block."""
    balance, max_effective = pl.col("before"), pl.col("max_effective")
    full = pl.col("withdrawable") <= pl.col("epoch")
    above = (pl.col("effective_balance_gwei") == max_effective) & (balance > max_effective)
    amount = (
        pl.when((pl.col("kind") == "0x00") | (pl.col("epoch") <= pl.col("changed"))).then(0)
        .when(full).then(balance).when(above).then(balance - max_effective).otherwise(0)
    )  # fmt: skip
    changes = simulated.bls_change_events.select(KEY[0], changed=pl.col("slot") // 32)
    states = simulated.states.join(changes, KEY[0], how="left").join(simulated.before, KEY)
    rows = states.with_columns(pl.col("changed").fill_null(-1)).select(*KEY, expected_gwei=amount)
    return rows.filter(pl.col("expected_gwei") > 0)


def test_a_sweep_pays_the_excess_or_the_whole_balance(simulated):
    """The whole balance when withdrawable; the excess at the maximum effective balance."""
    paid = simulated.withdrawal_events.with_columns(epoch=pl.col("slot") // 32)
    paid = paid.filter(pl.col("epoch") <= simulated.finalized + 1)
    assert paid.height == paid.select(KEY).unique().height
    swept = paid.join(simulated.manual_withdrawal_events, ["slot", KEY[0]], how="anti")
    rows = swept.join(compute_withdrawable(simulated), KEY, how="left")

    assert 0 == rows["expected_gwei"].null_count()
    assert_empty(rows.filter(pl.col("amount_gwei") != pl.col("expected_gwei")))


def test_the_sweep_continues_after_the_last_validator_paid(simulated):
    """Blocks have the next sixteen withdrawals by index, from the first after the last."""
    paid = simulated.withdrawal_events
    paid_in = dict(paid.group_by("slot", maintain_order=True).agg("validator_index").rows())
    due_in = dict(
        compute_withdrawable(simulated).sort(KEY).group_by("epoch").agg("validator_index").rows()
    )
    known = dict(simulated.balance_history.group_by("epoch").len().rows())

    assert [*range(paid.height)] == paid["withdrawal_index"].to_list()
    for validator, slot in simulated.switch_events.select(KEY[0], "slot").rows():
        due_in[slot // 32] = [index for index in due_in[slot // 32] if index != validator]
    manual = dict(simulated.manual_withdrawal_events.group_by("slot").len().rows())
    start, waiting, now = 0, [], None
    known_until = pl.col("epoch") <= simulated.finalized + 1
    for slot, epoch in simulated.produced.filter(known_until).select("slot", "epoch").rows():
        if epoch != now:
            waiting, now = sorted(due_in.get(epoch, [])), epoch
        cut = bisect_left(waiting, start)
        space = 16 - manual.get(slot, 0)
        turn = (waiting[cut:] + waiting[:cut])[:space]
        assert turn == paid_in.get(slot, [])[manual.get(slot, 0) :]
        waiting = sorted({*waiting} - {*turn}) if turn else waiting
        start = (turn[-1] + 1 if len(turn) == space else start + 16_384) % known[epoch]


def test_requested_withdrawals_leave_32_eth(simulated):
    """E16: requests of compounding validators are paid 261 epochs later, and keep 32 ETH."""
    requests = simulated.withdrawal_request_events.rename({"slot": "request_slot"})
    paid = simulated.manual_withdrawal_events.join(
        simulated.withdrawal_events, ["slot", KEY[0]]
    ).join(requests, [KEY[0], "request_slot"], suffix="_requested")
    rows = paid.with_columns(epoch=pl.col("slot") // 32).join(simulated.before, KEY, how="left")
    delay = pl.col("epoch") - pl.col("request_slot") // 32
    kinds = dict(simulated.validator_epochs.select(KEY[0], "kind").rows())

    assert 0 < rows.height == simulated.manual_withdrawal_events.height <= requests.height
    assert_empty(rows.filter(delay < 261))
    asked = pl.min_horizontal("amount_gwei_requested", pl.col("before") - 32 * ETH)
    assert_empty(rows.filter(pl.col("amount_gwei") != asked))
    assert {"0x02"} == {kinds[index] for index in requests[KEY[0]]}
    rejected = simulated.rejected_request_events
    assert 2 == rejected.height
    assert "0x02" not in {kinds[index] for index in rejected[KEY[0]]}


def test_both_tables_have_the_withdrawals_of_the_sweep(simulated):
    """Both tables have the withdrawals of the sweep, to the address of the credentials."""
    events = simulated.withdrawal_events
    tails = simulated.validators.select(
        KEY[0], address="0x" + pl.col("withdrawal_credentials").str.slice(-40)
    )
    roots = simulated.canonical.select("slot", "epoch", "block_root")
    expected = events.join(tails, KEY[0], maintain_order="left").join(
        roots, "slot", maintain_order="left"
    )
    by_validator, by_slot = simulated.validator_withdrawals, simulated.slot_withdrawals

    assert events.height > 1000
    assert expected.select(by_validator.drop("time").columns).equals(by_validator.drop("time"))
    renamed = expected.rename({"slot": "block_slot"})
    assert renamed.select(by_slot.drop("time").columns).equals(by_slot.drop("time"))


def test_withdrawals_add_up_to_the_totals_of_validators(simulated):
    """On a chain from genesis, withdrawals add up to the validators' totals."""
    sums = simulated.validator_withdrawals.group_by(KEY[0]).agg(pl.col("amount_gwei").sum())
    rows = simulated.validators.join(sums, KEY[0], how="left")
    before = rows["total_withdrawals_gwei"] - rows["amount_gwei"].fill_null(0)

    assert before.min() == 0
    assert (simulated.first == 0) == (before.max() == 0)


def test_withdrawals_begin_after_the_bls_change(simulated):
    """A validator has an address and withdrawals only since its BLS change."""
    assert_same_rows(
        simulated.bls_changes.select("slot", KEY[0]),
        simulated.bls_change_events.select("slot", KEY[0]),
    )
    paid = simulated.validator_withdrawals
    later = 0
    for row in simulated.bls_changes.to_dicts():
        validator = row["validator_index"]
        new = simulated.validators["withdrawal_credentials"][validator]
        assert new == row["withdrawal_credentials_0x01"]
        assert "0x01" + "0" * 22 + row["address"][2:] == new
        assert "0x00" == row["withdrawal_credentials_0x00"][:4]
        mine = paid.filter(pl.col(KEY[0]) == validator)
        assert 0 == mine.filter(pl.col("slot") <= row["slot"]).height
        later += mine.height
    assert later
    with_bls = simulated.validators.filter(pl.col("withdrawal_credentials").str.starts_with("0x00"))
    assert with_bls.height
    assert 0 == paid.join(with_bls, KEY[0]).height


def test_bls_changes_name_the_canonical_block_of_their_slot(simulated):
    """A change names the canonical block of its slot."""
    roots = simulated.produced.select("slot", "epoch", "block_root")
    key = ["slot", "epoch", "block_root"]

    assert_empty(simulated.bls_changes.join(roots, key, how="anti"))
    assert simulated.bls_changes[KEY[0]].n_unique() == simulated.bls_changes.height > 1
