"""Test simulated daily statistics of validators."""

import numpy as np
import polars as pl
import pytest

from ..support.first_blocks import compute_first_blocks
from ..support.simulated_chain import DAILY, KEY, assert_empty, assert_same_rows, count_rows


@pytest.fixture
def days(simulated):
    return simulated.validator_stats.filter(pl.col("day") >= 0)


def test_a_day_has_the_validators_known_by_its_end(simulated, days):
    """Complete days have all validators that were known by their end."""
    starts = simulated.balance_history.group_by(KEY[0]).agg(pl.col("epoch").min())
    grid = starts.join(pl.DataFrame({"day": simulated.days}), how="cross")
    expected = grid.filter(pl.col("epoch") <= (pl.col("day") + 1) * 225)

    assert len(simulated.days)
    assert expected.select(DAILY).sort(DAILY).equals(days.select(DAILY))


def test_balances_are_first_last_lowest_and_highest_of_the_day(simulated, days):
    """First, last, minimum and maximum of the balances at the epochs of the day."""
    states = simulated.balance_history.with_columns(day=pl.col("epoch") // 225)
    for name in ("balance_gwei", "effective_balance_gwei"):
        value = pl.col(name)
        inside = states.group_by(DAILY).agg(
            low=value.min(), high=value.max(), start=value.filter(pl.col("epoch") % 225 == 0)
            .first()
        )  # fmt: skip
        after = states.filter(pl.col("epoch") % 225 == 0).select(
            KEY[0], pl.col("day") - 1, end=name
        )
        rows = days.join(inside, DAILY, how="left").join(after, DAILY)
        assert days.height == rows.height
        for kind, column in (
            ("start", "start"), ("end", "end"), ("min", "low"), ("max", "high"),
        ):  # fmt: skip
            assert_empty(rows.filter(pl.col(f"{kind}_{name}") != pl.col(column).fill_null(0)))


def test_balances_move_by_the_income_of_the_day(simulated, days):
    """M3: end minus start minus deposits plus withdrawals is the net income of the day.

    Balances are those after the first block of a day, whose income counts for the day before.
    """
    net = (
        simulated.net.with_columns(day=pl.col("epoch") // 225)
        .group_by(DAILY)
        .agg(pl.col("gwei").sum())
    )
    first = compute_first_blocks(simulated).filter(pl.col("epoch") % 225 == 0)
    first = first.select(KEY[0], "low", "high", day=pl.col("epoch") // 225)
    after = first.with_columns(pl.col("day") - 1)
    rows = (
        days.join(net, DAILY, how="left")
        .join(first, DAILY, how="left")
        .join(after, DAILY, how="left", suffix="_after")
        .with_columns(pl.col("gwei", "^(low|high).*$").fill_null(0))
    )
    moved = (
        pl.col("end_balance_gwei")
        - pl.col("start_balance_gwei")
        - pl.col("deposits_amount_gwei")
        + pl.col("withdrawals_amount_gwei")
    )

    least = pl.col("low_after") - pl.col("high")
    most = pl.col("high_after") - pl.col("low")
    assert_empty(rows.filter(~(moved - pl.col("gwei")).is_between(least, most)))


def test_payments_count_on_the_day_in_whose_balance_they_are_first(simulated, days):
    """Deposits and withdrawals are counted on the day in whose end balance they are first.

    The first block of a day is in the balance at its start.
    """
    keys = simulated.validators.select("pubkey", KEY[0])
    for kind, rows in (
        ("deposits", simulated.slot_deposits.join(keys, "pubkey")),
        ("withdrawals", simulated.slot_withdrawals),
    ):
        expected = (
            rows.with_columns(day=(pl.col("block_slot") - 1) // 7200)
            .filter(pl.col("day").is_in(list(simulated.days)))
            .group_by(DAILY)
            .agg(pl.len(), pl.col("amount_gwei").sum())
        )
        found = days.filter(pl.col(f"{kind}_count") > 0)
        assert_same_rows(found.select(*DAILY, f"{kind}_count", f"{kind}_amount_gwei"), expected)


def test_blocks_and_slashings_are_counted_by_proposer(simulated, days):
    """Blocks are counted by proposer and status, slashings in the canonical ones."""
    rows = simulated.blocks.with_columns(
        day=pl.col("epoch") // 225, validator_index="proposer_index"
    ).filter(pl.col("day") < simulated.days.stop, pl.col(KEY[0]).is_not_null())
    for status in ("proposed", "missed", "orphaned"):
        expected = count_rows(rows.filter(pl.col("status") == status), *DAILY)
        found = days.filter(pl.col(f"{status}_blocks") > 0)
        assert_same_rows(found.select(*DAILY, f"{status}_blocks"), expected)
    for kind in ("attester", "proposer"):
        expected = (
            rows.filter(pl.col("status") == "proposed")
            .group_by(DAILY)
            .agg(pl.col(f"{kind}_slashings_count").sum())
            .filter(pl.col(f"{kind}_slashings_count") > 0)
        )
        found = days.filter(pl.col(f"{kind}_slashings") > 0)
        assert_same_rows(found.select(*DAILY, f"{kind}_slashings"), expected)


def test_missed_attestations_are_those_of_the_day(simulated, days):
    """Misses are those of the day; none is orphaned."""
    rows = simulated.missed_attestation_events.with_columns(day=pl.col("epoch") // 225)
    expected = count_rows(rows.filter(pl.col("day") < simulated.days.stop), *DAILY)

    assert_same_rows(
        days.filter(pl.col("missed_attestations") > 0).select(*DAILY, "missed_attestations"),
        expected,
    )
    assert 0 == days["orphaned_attestations"].sum()


def test_sync_duties_are_signed_or_missed_by_their_bits(simulated, days):
    """A seat has a duty in every block: signed if its bit is set, missed if not."""
    good = simulated.produced.with_columns(day=pl.col("epoch") // 225).filter(
        pl.col("day") < simulated.days.stop
    )
    lone = simulated.blocks.filter(
        pl.col("status") == "orphaned", ~pl.col("slot").is_in(good["slot"].to_list())
    ).filter(pl.col("epoch") // 225 < simulated.days.stop)
    seats = simulated.sync_committees.partition_by("period", as_dict=True)
    members = {p: rows[KEY[0]].to_numpy() for (p,), rows in seats.items()}
    done, held, orphaned = np.zeros(
        (3, simulated.days.stop, simulated.meta["validators"]), np.int64
    )
    for (epoch,), rows in good.partition_by("epoch", as_dict=True).items():
        text = "".join(rows["sync_aggregate_bits"].str.slice(2))
        data = np.frombuffer(bytes.fromhex(text), np.uint8).reshape(-1, 64)
        signed = np.unpackbits(data, axis=1, bitorder="little").astype(int)
        np.add.at(done[epoch // 225], members[epoch // 256], signed.sum(axis=0))
        np.add.at(held[epoch // 225], members[epoch // 256], rows.height)
    for epoch in lone["epoch"].to_list():
        np.add.at(orphaned[epoch // 225], members[epoch // 256], 1)
    at = days["day"].to_numpy(), days[KEY[0]].to_numpy()
    for name, expected in (
        ("participated", done), ("missed", held - done), ("orphaned", orphaned),
    ):  # fmt: skip
        assert expected[at].tolist() == days[f"{name}_sync"].to_list()
        assert expected.sum() == days[f"{name}_sync"].sum()


def test_the_day_before_the_first_has_the_deposits_of_genesis(simulated):
    """The day before the first has the deposits of genesis, if the chain starts there."""
    rows = simulated.validator_stats.filter(pl.col("day") < 0)
    began = simulated.balance_history.filter(pl.col("epoch") == 0)

    assert began[KEY[0]].to_list() == rows[KEY[0]].to_list()
    assert began["balance_gwei"].to_list() == rows["deposits_amount_gwei"].to_list()
    assert {-1} >= set(rows["day"])
