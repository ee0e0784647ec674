"""Totals of days, validators and problems: small frames, added up by hand."""

import dataclasses
import inspect
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from beaconframes import analysis
from beaconframes.calendar import MAINNET
from beaconframes.errors import UsageError
from beaconframes.units import to_eth

from ..support.beacon_states import load_states
from .test_attestation_losses import HEAD
from .test_daily_income import stats
from .test_income import history
from .test_problems import MISSED, VOTED, stakes, validators
from .test_proposals import BLOCKS, EARNED

ETH = 10**9
WEI = pl.Decimal(28, 0)
NO_BLOCKS = pl.DataFrame(
    schema={
        "proposer_index": pl.Int64,
        "epoch": pl.Int64,
        "producer_reward_wei": WEI,
        "block_reward_wei": WEI,
    }
)
DAYS = pl.DataFrame(
    {
        "date": [date(2026, 10, 1)] * 2 + [date(2026, 10, 2)] * 2,
        "validator_index": [1, 2, 1, 2],
        "consensus_income_gwei": [5, 7, 11, 13],
        "net_income_wei": [50, 70, None, 130],
        "execution_income_basis": ["received", "received", "unknown", "received"],
        "income_value": ["0.5", None, None, None],
        "withdrawals_value": ["1", None, None, None],
    },
    schema_overrides={
        "net_income_wei": WEI,
        "income_value": pl.Decimal(38, 8),
        "withdrawals_value": pl.Decimal(38, 8),
    },
)


def test_a_ledger_is_added_up_by_day_and_by_validator():
    """An unknown amount makes its sum unknown; a day without a price has no value, not 0."""
    days = analysis.ledger_totals(DAYS)

    assert [
        (date(2026, 10, 1), 2, 12, Decimal(120), "received", Decimal("0.5"), 1),
        (date(2026, 10, 2), 2, 24, None, "unknown", None, 1),
    ] == days.drop("withdrawals_value").rows()
    each = analysis.ledger_totals(DAYS, by="validator_index")
    assert [(1, 1, 16, None), (2, 1, 20, Decimal(200))] == each.select(each.columns[:4]).rows()
    (everything,) = analysis.ledger_totals(DAYS, by=()).rows(named=True)
    assert (2, 36, 2) == tuple(
        everything[name] for name in ("validators", "consensus_income_gwei", "days_without_price")
    )


def test_totals_need_exact_amounts():
    """After `to_eth` there is no amount to add up: an error, instead of totals without amounts."""
    for add_up in (analysis.ledger_totals, analysis.yearly_totals):
        with pytest.raises(UsageError, match=r"in ETH.*before bf\.to_eth"):
            add_up(to_eth(DAYS))


def test_dates_of_a_csv_file_are_explained():
    """A ledger that was written and read again has texts instead of dates."""
    texts = DAYS.with_columns(pl.col("date").cast(pl.String))
    for use in (
        analysis.ledger_totals,
        analysis.yearly_totals,
        lambda ledger: analysis.tax_rows(ledger, "koinly"),
    ):
        with pytest.raises(UsageError, match=r"date holds String.*str\.to_date"):
            use(texts)
    assert 1 == analysis.yearly_totals(texts.with_columns(pl.col("date").str.to_date())).height


@pytest.mark.parametrize("rows", [0, 2])
def test_a_pandas_ledger_without_any_price(rows):
    """A column of objects without a value has no type; its sums are unknown."""
    values = ["income_value", "withdrawals_value"]
    book = DAYS.with_columns(pl.lit(None, pl.Decimal(38, 8)).alias(name) for name in values)
    book = book.with_columns(eur="income_value").head(rows).to_pandas()
    book[values] = book[values].astype(object)

    days = pl.from_pandas(analysis.ledger_totals(book))
    years = pl.from_pandas(analysis.yearly_totals(book))
    tax = pl.from_pandas(analysis.tax_rows(book, "koinly", price="eur"))

    known = rows // 2
    assert (known, known, known) == (days.height, years.height, tax.height)
    assert known == days["income_value"].null_count() == tax["Net Worth Amount"].null_count()
    assert {"income_value": pl.Decimal(38, 8)}.items() <= dict(years.schema).items()


def test_votes_beside_the_network():
    """Shares of votes, weighted 14, 26 and 14 of 54."""
    income = history(*((0, e, VOTED | ({HEAD: 0} if e < 25 else {})) for e in range(100)))
    network = pl.DataFrame(
        {
            "attestations_assigned": [200],
            "attestations_included": [190],
            "valuable_correct_source": [190],
            "valuable_correct_target": [180],
            "valuable_correct_head": [160],
        }
    )

    rows = analysis.compare_with_network(analysis.attestation_rates(income), network)

    by_measure = {row["measure"]: row for row in rows.rows(named=True)}
    assert (1, 0.95) == tuple(by_measure["included_rate"][s] for s in ("own", "network"))
    assert (0.75, 0.8) == tuple(by_measure["head_rate"][s] for s in ("own", "network"))
    total = by_measure["effectiveness"]
    assert (14 + 26 + 14 * 0.75) / 54 == pytest.approx(total["own"])
    assert (14 * 0.95 + 26 * 0.9 + 14 * 0.8) / 54 == pytest.approx(total["network"])
    assert total["own"] - total["network"] == total["difference"]
    alone = analysis.compare_with_network(analysis.attestation_rates(income), network.clear())
    assert alone["own"].equals(rows["own"])
    assert 5 == alone["network"].null_count() == alone["difference"].null_count()


def test_balances_at_the_end_of_local_days():
    """The last epoch of each day in Berlin, with quantiles that are balances."""
    times = [datetime(2026, 10, 1, hour, 10, tzinfo=UTC) for hour in (20, 21, 22)]
    rows = pl.DataFrame(
        [
            {"validator_index": v, "epoch": e, "time": time, "balance_gwei": 100 * e + v}
            for e, time in enumerate(times)
            for v in range(11)
        ],
        schema_overrides={"time": pl.Datetime("us", "UTC")},
    ).with_columns(effective_balance_gwei=pl.lit(32))

    days = analysis.daily_balances(rows, tz="Europe/Berlin")

    assert [
        (date(2026, 10, 1), 11, 11 * 100 + 55, 352, 101, 105, 109),
        (date(2026, 10, 2), 11, 11 * 200 + 55, 352, 201, 205, 209),
    ] == days.rows()


def test_groups_may_be_columns_of_the_result():
    """To group by a day, or by the basis of execution income, adds no second column of it."""
    bases = analysis.ledger_totals(DAYS, by="execution_income_basis")
    assert [("received", 2, 25), ("unknown", 1, 11)] == bases.select(bases.columns[:3]).rows()
    table = stats((1, {"missed_attestations": 5}), (2, {}))
    daily = analysis.daily_income(table)
    periods = pl.DataFrame(
        {"validator_index": [1, 2], "activation_epoch": [0, 0], "exit_epoch": [None, None]},
        schema_overrides={"exit_epoch": pl.Int64},
    )
    for every in ("day", "all"):
        assert [3] == analysis.daily_rates(daily, by="day", every=every)["day"].to_list()
        assert [3] == analysis.daily_votes(table, periods, by="day", every=every)["day"].to_list()


def test_daily_luck_is_that_of_constant_balances():
    """A day of equal balances expects what its 225 epochs expect together."""
    index = pl.DataFrame(
        {"day": [3], "effective_balances_sum_wei": [Decimal(64 * 10**20)]},
        schema_overrides={"effective_balances_sum_wei": WEI},
    )
    blocks = pl.DataFrame(
        {"slot": [21_600, 28_799], "epoch": [675, 899], "status": "proposed", "proposer_index": 1}
    )
    epochs = pl.DataFrame({"epoch": range(675, 900)}).with_columns(
        validator_index=1, effective_balance_gwei=32 * ETH
    )

    (by_day,) = analysis.daily_luck(blocks, stats((1, {})), index).rows(named=True)
    totals = analysis.total_balances(index)
    (by_epoch,) = analysis.proposal_luck(blocks, epochs, totals).rows(named=True)

    assert (675, 899, 225) == (totals["epoch"].min(), totals["epoch"].max(), totals.height)
    assert 7200 * 32 / 6400 == pytest.approx(by_day.pop("expected"))
    assert by_epoch.pop("expected") == pytest.approx(36)
    assert by_epoch == pytest.approx(by_day)
    assert (2, 7200) == (by_day["drawn"], by_day["slots"])


def test_daily_luck_by_day():
    """Each day has its own expected proposals, and those that were drawn on it."""
    index = pl.DataFrame(
        {"day": [3, 4], "effective_balances_sum_wei": [Decimal(64 * 10**20)] * 2},
        schema_overrides={"effective_balances_sum_wei": WEI},
    )
    blocks = pl.DataFrame(
        {"slot": [21_600, 28_799, 28_800], "epoch": [675, 899, 900], "status": "proposed"}
    ).with_columns(proposer_index=1)

    rows = analysis.daily_luck(blocks, stats((1, {}), (1, {"day": 4}), (2, {})), index, by="day")

    assert [(3, 7200, 2), (4, 7200, 1)] == rows.select("day", "slots", "drawn").rows()
    assert [72, 36] == pytest.approx(rows["expected"].to_list())


def test_daily_luck_counts_the_active_epochs_of_a_day():
    """Of days 3 to 5, validator 1 is active from epoch 675 + 25 until epoch 1125 + 45.

    Its proposals on the days of activation and exit count, and so do their expected numbers.
    """
    index = pl.DataFrame(
        {"day": [3, 4, 5], "effective_balances_sum_wei": [Decimal(64 * 10**20)] * 3},
        schema_overrides={"effective_balances_sum_wei": WEI},
    )
    epochs = [700, 1000, 1169]
    blocks = pl.DataFrame({"epoch": epochs, "status": "proposed", "proposer_index": 1})
    blocks = blocks.with_columns(slot=pl.col("epoch") * 32)
    periods = pl.DataFrame(
        {
            "validator_index": [1, 2, 3, 4],
            "activation_epoch": [700, None, 1350, 600],
            "exit_epoch": [1170, None, None, 675],
        }
    )
    days = [(n, {"day": day}) for n in (1, 2, 3, 4) for day in (3, 4, 5)]
    days[0][1]["start_effective_balance_gwei"] = 0  # The deposit is of the same day.

    (row,) = analysis.daily_luck(blocks, stats(*days), index, validators=periods).rows(named=True)

    # The others are not active on any of these days.
    assert (1, 3, 3 * 7200) == (row["validator_index"], row["drawn"], row["slots"])
    assert (200 + 225 + 45) * 32 * 32 / 6400 == pytest.approx(row["expected"])


def test_days_of_the_index_count_once():
    """Two loads that overlap repeat days; two indices that differ are refused."""
    index = pl.DataFrame(
        {"day": [3, 4], "effective_balances_sum_wei": [Decimal(64 * 10**20)] * 2},
        schema_overrides={"effective_balances_sum_wei": WEI},
    )

    twice = analysis.total_balances(pl.concat([index, index]), every="day")

    assert [(3, 6400 * ETH), (4, 6400 * ETH)] == twice.rows()
    half = index.with_columns(pl.lit(Decimal(32 * 10**20)).alias("effective_balances_sum_wei"))
    with pytest.raises(UsageError, match="several balances of day 3"):
        analysis.total_balances(pl.concat([index, half], how="vertical_relaxed"))


def test_daily_duties_by_validator():
    """Votes and sync duties of each validator; without a duty there is no share."""
    table = stats(
        (1, {"missed_attestations": 5, "participated_sync": 30, "missed_sync": 10}),
        (2, {"missed_attestations": 0}),
    )
    periods = pl.DataFrame(
        {"validator_index": [1, 2], "activation_epoch": [0, 800], "exit_epoch": [None, None]},
        schema_overrides={"exit_epoch": pl.Int64},
    )

    votes = analysis.daily_votes(table, periods, every="all", by="validator_index")

    assert [(1, 225, 5, 1 - 5 / 225), (2, 100, 0, 1.0)] == votes.rows()
    (total,) = analysis.daily_votes(table, periods, every="all").rows()
    assert (325, 5, 1 - 5 / 325) == total
    assert [(1, 30, 10, 0.75)] == analysis.daily_sync(table).rows()


def test_daily_rates_of_each_validator():
    """Each validator's income over its own stake."""
    table = stats((1, {"end_balance_gwei": 32 * ETH + 320}), (2, {}))
    days = analysis.daily_income(table, NO_BLOCKS)

    rates = analysis.daily_rates(days, every="all", by="validator_index")

    assert [(1, 365e-8), (2, 0)] == [
        (index, pytest.approx(rate))
        for index, rate in rates.select("validator_index", "apr_on_effective").rows()
    ]
    assert [1, 2] == analysis.daily_rates(days, by="validator_index")["validator_index"].to_list()


def test_daily_rates_count_the_epochs_in_which_a_validator_is_active():
    """Days before the activation and after the exit earn nothing, and are no stake."""
    earned = {"end_balance_gwei": 32 * ETH + 3_200_000}
    table = stats((1, earned), (2, {"end_balance_gwei": 32 * ETH + 1_600_000}), (3, {}), (4, {}))
    days = analysis.daily_income(table, NO_BLOCKS)
    periods = pl.DataFrame(
        {
            "validator_index": [1, 2, 3, 4],
            "activation_epoch": [0, 3 * 225 + 100, None, 0],
            "exit_epoch": [None, 3 * 225 + 100 + 45, None, 3 * 225],
        }
    )

    for by, active in (((), 1.2), ("day", 1.2), ("validator_index", 1)):
        row = analysis.daily_rates(
            days, every="all", by=by, validators=periods, chain="mainnet"
        ).row(0, named=True)
        income = 4_800_000 if active > 1 else 3_200_000
        assert active == pytest.approx(row["validator_days"])
        assert 365 * income / (active * 32 * ETH) == pytest.approx(row["apr_on_effective"])
        assert row["apr_on_effective"] == pytest.approx(row["apr_on_32_eth"])
    fast = dataclasses.replace(MAINNET, seconds_per_slot=6)  # Its day 3 begins with epoch 1,350.
    row = analysis.daily_rates(days, every="all", validators=periods, chain=fast)
    assert 1 == row["validator_days"][0]
    whole = analysis.daily_rates(days, every="all").row(0, named=True)
    assert 4 == whole["validator_days"]
    grouped = days.to_pandas().astype({"validator_index": float}).assign(exit_epoch=900)
    alike = analysis.daily_rates(
        grouped, every="all", by="exit_epoch", validators=periods, chain="mainnet"
    )
    assert [1.2] == pytest.approx(alike["validator_days"].to_list())
    partial = analysis.daily_rates(days, validators=periods.head(3), chain="mainnet")
    assert [2.2] == pytest.approx(partial["validator_days"].to_list())
    labels = pl.DataFrame({"validator_index": [1, 2, 2], "label": ["a", "a", "b"]})
    labelled = analysis.daily_rates(
        days.join(labels, "validator_index"), by="label", validators=periods, chain="mainnet"
    )
    assert [1.2, 0.2] == pytest.approx(labelled["validator_days"].to_list())
    with pytest.raises(UsageError, match="repeat each other"):
        analysis.daily_rates(days, validators=pl.concat([periods, periods]))
    each = analysis.daily_rates(days, by="validator_index", validators=periods, chain="mainnet")
    assert each.filter(validator_index=3).select("^apr.*$").row(0) == (None,) * 3


@pytest.mark.parametrize("every", ["day", "all"])
def test_daily_rates_compare_only_whole_days_with_the_index(every):
    """As in `apr`: validator 2 is slashed and exits on day 3. The index has neither of it."""
    earned, lost = ({"end_balance_gwei": 32 * ETH + n} for n in (3_200_000, -(10**9)))
    days = analysis.daily_income(stats((1, earned), (2, lost)), NO_BLOCKS)
    periods = pl.DataFrame(
        {"validator_index": [1, 2], "activation_epoch": [0, 0], "exit_epoch": [None, 3 * 225 + 45]}
    )
    index = pl.DataFrame({"day": [3], "apr": [0.03]})

    (row,) = analysis.daily_rates(
        days, index, every=every, validators=periods, chain="mainnet"
    ).rows(named=True)

    assert 365 * (3_200_000 - 10**9) / (1.2 * 32 * ETH) == pytest.approx(row["apr_on_effective"])
    found = [row[name] for name in ("apr_as_index", "index_apr", "difference_bp")]
    assert [0.0365, 0.03, 65] == pytest.approx(found)


def test_daily_rates_count_a_slashed_validator_while_it_has_penalties():
    """Validator 2 has an income row in 90 epochs of day 3, as in `apr`: 45 are after its exit.

    The consensus specification penalizes it while the next epoch is not withdrawable.
    """
    earned, lost = ({"end_balance_gwei": 32 * ETH + n} for n in (3_200_000, -(10**9)))
    days = analysis.daily_income(stats((1, earned), (2, lost)), NO_BLOCKS)
    periods = pl.DataFrame(
        {
            "validator_index": [1, 2],
            "activation_epoch": [0, 0],
            "exit_epoch": [None, 3 * 225 + 45],
            "withdrawable_epoch": [None, 3 * 225 + 91],
            "slashed": [False, True],
        }
    )

    for every in ("day", "all"):
        row = analysis.daily_rates(
            days, every=every, validators=periods, chain="mainnet"
        ).row(0, named=True)  # fmt: skip
        assert 1.4 == pytest.approx(row["validator_days"])
        rate = 365 * (3_200_000 - 10**9) / (1.4 * 32 * ETH)
        assert [rate, 0.0365] == pytest.approx([row["apr_on_effective"], row["apr_as_index"]])


def test_sync_income_of_each_validator():
    duties = history(
        (1, 5, {"sync_committee_reward_gwei": 900, "sync_committee_penalty_gwei": 100}),
        (1, 300, {"sync_committee_reward_gwei": 1000}),
    )

    (row,) = analysis.sync_income(duties, every="all").rows(named=True)

    assert (1, 5, 300, 1900, 100, 0.95, 200) == tuple(
        row[name]
        for name in (
            *("validator_index", "first_epoch", "last_epoch", "reward_gwei", "penalty_gwei"),
            *("signed_rate", "lost_gwei"),
        )
    )


def test_problems_are_added_up():
    """Offline 3 epochs and 1 single miss of one validator; what the slashing cost is unknown."""
    income = history(*((1, e, MISSED if e in (3, 4, 5, 9) else VOTED) for e in range(12)))
    table = validators({"slashed": True}, {}, *[{"withdrawal_credentials": "0x01"}] * 3)
    found = analysis.problems(table, income, stakes(income))
    known = pl.when(pl.col("kind") != "slashed").then("cost_gwei")
    found = found.with_columns(cost_gwei=known)
    lost = 1000

    kinds = analysis.problem_totals(found)

    assert [
        ("offline", 1, 1, 3 * lost, 3 * lost, 0, 0, 0),
        ("missed votes", 1, 1, lost, lost, 0, 0, 0),
        ("not compounding", 1, 3, None, None, None, None, 0),
        ("slashed", 1, 1, None, None, None, None, 1),
    ] == kinds.rows()
    each = analysis.problem_totals(found, by="validator_index")
    assert [(1, 4 * lost), (0, None)] == each.select("validator_index", "lost_gwei").rows()
    (total,) = analysis.problem_totals(found, by=()).rows(named=True)
    assert (4, 3, 4 * lost, 1) == tuple(
        total[name] for name in ("problems", "validators", "lost_gwei", "cost_unknown")
    )
    assert 0 == analysis.problem_totals(found.clear(), by=())["lost_gwei"][0]
    advice = found.filter(pl.col("kind") == "not compounding")
    assert 0 == analysis.problem_totals(advice, by=())["lost_gwei"][0]
    with pytest.raises(UsageError, match=r"whole numbers.*bf\.analysis\.problems\("):
        analysis.problem_totals(found.cast({"cost_gwei": pl.Float64}))


def test_proposals_with_rewards_and_costs():
    """Blocks outside of the proposals do not count; a missed slot has a cost and no reward."""
    slots = BLOCKS.with_columns(graffiti_text=pl.lit("a"))
    first = slots.filter(pl.col("status") == "proposed").row(0, named=True)
    paid = pl.DataFrame(
        {
            "slot": [first["slot"], 70_000, None],
            "epoch": [first["epoch"], 2187, None],
            "time": [first["time"], MAINNET.time_of("slot", 70_000), None],
            "proposer_index": [first["proposer_index"], 9, None],
            "producer_reward_wei": [40, 50, 60],
            "relay_tag": ["one", None, "two"],
        },
        schema_overrides={"producer_reward_wei": WEI, "time": pl.Datetime("us", "UTC")},
    )

    rows = analysis.proposal_outcomes(slots, blocks=paid)

    assert slots["slot"].unique().sort().to_list() == rows["slot"].to_list()
    by_slot = {row["slot"]: row for row in rows.rows(named=True)}
    assert (40, "one") == tuple(by_slot[first["slot"]][n] for n in ("reward_wei", "relay_tag"))
    costs = analysis.missed_proposals(slots, EARNED)
    assert costs["cost_consensus_gwei"].to_list() == (
        analysis.proposal_outcomes(slots, income=EARNED)
        .filter(pl.col("status").is_in(["missed", "orphaned"]))["cost_consensus_gwei"]
        .to_list()
    )
    assert (3, 2, 100) == analysis.relay_payments(paid).row(0)
    unknown = paid.with_columns(producer_reward_wei=pl.lit(None, WEI))
    assert (3, 2, None) == analysis.relay_payments(unknown).row(0)
    assert (0, 0, 0) == analysis.relay_payments(paid.clear()).row(0)


def test_payments_of_builders_count_where_relays_are_unknown():
    """A node shows what the builder paid, and not the relay; fees of own blocks are no payment."""
    rows = [(40, 40, None), (50, 0, None), (60, 90, "one"), (70, 80, None), (None, None, None)]
    names = {"producer_reward_wei": WEI, "block_mev_reward_wei": WEI, "relay_tag": pl.String}
    blocks = pl.DataFrame(rows, names, orient="row")

    assert (4, 2, 100) == analysis.relay_payments(blocks.head(4)).row(0)
    assert (5, 2, 100) == analysis.relay_payments(blocks).row(0)


def test_what_is_coming_up():
    """Seats of own members once each, proposals, exits after the epoch; "never" is no event."""
    table = pl.DataFrame(
        {
            "validator_index": [1, 2],
            "activation_epoch": [0, 700],
            "exit_epoch": [600, 2**64 - 1],
            "withdrawable_epoch": [856, None],
        },
        schema_overrides={"exit_epoch": pl.UInt64},
    )
    seats = pl.DataFrame(
        {
            "validator_index": [1, 1, 5, 2, 1],
            "start_epoch": [512, 512, 512, 768, 256],
            "end_epoch": [767, 767, 767, 1023, 511],
        }
    )
    duties = pl.DataFrame(
        {
            "duty": ["proposal", "proposal", "attestation"],
            "slot": [19_300, 19_301, 19_302],
            "validator_index": [2, 5, 2],
        }
    )

    rows = analysis.upcoming_duties(table, seats, duties, epoch=600, chain=MAINNET)

    assert [
        ("in sync committee", 1, None, 512, 767),
        ("proposal", 2, 19_300, 603, 603),
        ("activation", 2, None, 700, 700),
        ("sync committee", 2, None, 768, 1023),
        ("full withdrawal", 1, None, 856, 856),
    ] == rows.select("kind", "validator_index", "slot", "first_epoch", "last_epoch").rows()
    assert MAINNET.time_of("epoch", 1024) == rows["until"][3]
    assert "exit" in analysis.upcoming_duties(table, epoch=599)["kind"].to_list()
    # An end is inclusive: a committee is in session until its last epoch.
    last, after = (analysis.upcoming_duties(table, seats, epoch=n)["kind"] for n in (767, 768))
    assert "in sync committee" == last[0]
    assert 1 == after.to_list().count("in sync committee")


def test_what_is_coming_up_is_counted_by_kind_and_day():
    """200 seats of one committee are one row; proposals of two days are two."""
    times = [datetime(2026, 10, 1, hour, tzinfo=UTC) for hour in (3, 5)]
    times += [datetime(2026, 10, 2, 1, tzinfo=UTC)]
    rows = pl.DataFrame(
        [
            *(
                {"kind": "sync committee", "validator_index": v, "since": times[0], "slot": None}
                for v in range(200)
            ),
            *(
                {"kind": "proposal", "validator_index": 7, "since": time, "slot": slot}
                for slot, time in enumerate(times)
            ),
        ],
        schema_overrides={"since": pl.Datetime("us", "UTC"), "slot": pl.Int64},
    ).with_columns(until=pl.col("since") + pl.duration(hours=1), first_epoch=9, last_epoch=9)

    totals = analysis.upcoming_totals(rows)

    assert [
        ("proposal", date(2026, 10, 1), 2, 1, times[0], times[1]),
        ("sync committee", date(2026, 10, 1), 200, 200, times[0], times[0]),
        ("proposal", date(2026, 10, 2), 1, 1, times[2], times[2]),
    ] == totals.select("kind", "date", "count", "validators", "since", "last_since").rows()
    for name in ("since", "until"):
        with pytest.raises(UsageError, match=f"{name} holds String, not times.*str.to_datetime"):
            analysis.upcoming_totals(rows.with_columns(pl.col(name).cast(pl.String)))


def test_explained_changes_are_counted():
    changes = pl.DataFrame(
        {"unexplained_gwei": [0, 5, -7, 0], "possible_cause": [None, "a deposit", None, "nothing"]}
    )
    assert (4, 2, 2, -2, 1) == analysis.reconciliation_totals(changes).row(0)


def test_the_earliest_activation_of_a_waiting_validator():
    """Real chains since Electra activate a validator 6 epochs after that of its eligibility."""
    table = pl.DataFrame(
        {
            "validator_index": [67, 70, 71, 72],
            "activation_eligibility_epoch": [4, 8, 1, None],
            "activation_epoch": [10, None, 2**63 - 1, None],
            "exit_epoch": [None] * 4,
            "withdrawable_epoch": [None] * 4,
        },
        schema_overrides={"exit_epoch": pl.Int64, "withdrawable_epoch": pl.Int64},
    )

    rows = analysis.upcoming_duties(table, epoch=9)

    # Validator 71 was not activated in time: the end of epoch 9 is the next chance.
    assert [
        ("activation", 67, 10),
        ("earliest activation", 70, 14),
        ("earliest activation", 71, 14),
    ] == (rows.select("kind", "validator_index", "first_epoch").rows())
    without = analysis.upcoming_duties(table.drop("activation_eligibility_epoch"), epoch=9)
    assert ["activation"] == without["kind"].to_list()


def test_the_earliest_activation_is_that_of_a_recorded_chain():
    """A recorded chain since Electra: what follows from eligibility is what happened later."""
    state = load_states("electra").state(49)
    joined = np.flatnonzero(state.activation_eligibility_epochs > 2)
    epochs = [state.activation_eligibility_epochs[joined], state.activation_epochs[joined]]
    assert len(joined) > 3
    for index, eligible, activated in zip(joined, *epochs, strict=True):
        row = {"validator_index": int(index), "activation_eligibility_epoch": int(eligible)}
        row |= dict.fromkeys(["activation_epoch", "exit_epoch", "withdrawable_epoch"])
        found = analysis.upcoming_duties(pl.DataFrame([row]), epoch=int(eligible))
        assert int(activated) == found["first_epoch"].item()


@pytest.mark.parametrize(
    ("sums", "name"),
    [
        (analysis.apr, "whole_days"),
        (analysis.apr, "apr_on_effective"),
        (analysis.apr, "attestation_reward_gwei"),
        (analysis.apr, "index_el_apr"),
        (analysis.income, "net_income_wei"),
        (analysis.income, "first_epoch"),
        (analysis.attestation_rates, "votes"),
        (analysis.attestation_effectiveness, "late"),
        (analysis.attestation_effectiveness, "inverse"),
        (analysis.attestation_effectiveness, "effectiveness_possible"),
        (analysis.proposal_luck, "slots"),
        (analysis.proposal_luck, "now"),
        (analysis.sync_luck, "seats"),
        (analysis.performance, "validators"),
        (analysis.problem_totals, "validators"),
        (analysis.problem_totals, "avoidable_gwei"),
        (analysis.ledger_totals, "validators"),
        (analysis.relay_payments, "blocks"),
        (analysis.daily_rates, "validator_days"),
        (analysis.daily_rates, "index_apr"),
        (analysis.daily_rates, "stake"),
        (analysis.daily_rates, "index_reward"),
        (analysis.daily_votes, "votes"),
        (analysis.daily_sync, "signed"),
    ],
)
def test_a_group_cannot_be_named_like_a_sum(sums, name):
    """A group column with the name of a column of the result is refused, before rows are read."""
    needed = [
        parameter
        for parameter in inspect.signature(sums).parameters.values()
        if parameter.default is parameter.empty
    ]
    frames = [pl.DataFrame({name: [1]})] * len(needed)

    with pytest.raises(UsageError, match=f"by='{name}' is a column that the function computes"):
        sums(*frames, by=name)


@pytest.mark.parametrize("by", [None, 5, [1]])
def test_groups_are_names_of_columns(by):
    """Another value of *by* is refused with the value, and with what it can be."""
    with pytest.raises(UsageError, match=r"(?s)by=.* is not a column.*by=\(\) is all rows"):
        analysis.ledger_totals(pl.DataFrame({"date": []}), by=by)
    with pytest.raises(UsageError, match=r"by=\['pool'\] is not one column"):
        analysis.compare_groups(pl.DataFrame({"pool": []}), by=["pool"], values="pool")
