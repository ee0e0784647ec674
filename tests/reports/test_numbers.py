"""Each number of a report equals a polars query, written by hand, on the tables of the chain."""

from types import SimpleNamespace

import polars as pl
import pytest

from beaconframes.calendar import MAINNET
from beaconframes.reports.parts.groups import build_groups

from ..support.income_columns import PENALTIES, REWARDS
from .conftest import FIRST, LAST, MINE

NET = pl.sum_horizontal(REWARDS) - pl.sum_horizontal(PENALTIES)


@pytest.fixture
def answer(made):
    return made.report.frames["summary"].row(0, named=True)


def test_every_part_is_made(made):
    assert {} == made.report.left_out
    assert {"complete"} == set(made.report.frames["inputs"]["state"])
    assert 0 == made.report.frames["missing"].height


def test_the_range_and_the_validators(answer, made):
    assert (6, 6, FIRST, LAST) == tuple(
        answer[name] for name in ("validators", "active", "first_epoch", "last_epoch")
    )
    assert made.inputs.chain.time_of("epoch", FIRST) == answer["since"]
    assert made.inputs.chain.time_of("epoch", LAST + 1) == answer["until"]


def test_net_income_is_rewards_less_penalties_and_fees(answer, tables):
    """Consensus income is rewards less penalties; execution income is what proposers received."""
    consensus = tables["income_history"].select(NET.sum()).item()
    blocks = tables["execution_blocks"]
    received = int(blocks["producer_reward_wei"].sum())
    relays = blocks.filter(pl.col("relay_tag").is_not_null())["producer_reward_wei"].sum()

    assert consensus == answer["consensus_income_gwei"]
    assert received == answer["execution_income_wei"]
    assert consensus * 10**9 + received == answer["net_income_wei"]
    assert relays == answer["relay_payments_wei"]
    assert "received by the proposer" == answer["execution_income_basis"]
    assert received > 0


def test_income_by_day(made, tables):
    """Each day has the epochs that begin in it, and the days have all of the income."""
    days = (
        tables["income_history"]
        .group_by(pl.col("time").dt.date().alias("date"))
        .agg(consensus_income_gwei=NET.sum(), attested=pl.sum(*REWARDS[:1]))
        .sort("date")
    )

    frame = made.report.frames["income"]

    assert days["date"].to_list() == frame["date"].to_list()
    assert days["consensus_income_gwei"].to_list() == frame["consensus_income_gwei"].to_list()
    assert frame["net_income_wei"].sum() == made.report.frames["days"]["net_income_wei"].sum()


def test_yearly_rates_are_income_over_stake(answer, tables):
    """Income over the stake of each epoch, times the epochs of a year."""
    epochs = tables["income_history"].join(
        tables["balance_history"], on=["validator_index", "epoch"]
    )
    income = answer["net_income_wei"]
    stake = epochs["effective_balance_gwei"].sum()

    assert float(income) / 1e9 * 365 * 225 / stake == pytest.approx(answer["apr_on_effective"])
    rows = len(MINE) * (LAST - FIRST + 1)
    assert float(income) / 1e9 * 365 * 225 / (32e9 * rows) == pytest.approx(answer["apr_on_32_eth"])


def test_effectiveness_weighs_source_target_and_head(answer, made, tables):
    """The shares of source, target and head votes that were rewarded, by 14, 26 and 14 of 54."""
    shares = tables["income_history"].select(
        (pl.col(f"attestation_{vote}_reward_gwei") > 0).mean()
        for vote in ("source", "target", "head")
    )
    source, target, head = shares.row(0)

    assert (14 * source + 26 * target + 14 * head) / 54 == pytest.approx(answer["effectiveness"])
    network = made.report.frames["network"]
    assert answer["effectiveness"] == network.filter(pl.col("measure") == "effectiveness")["own"][0]
    assert 0.9 < answer["network_effectiveness"] < 1


def test_losses_add_up_to_missed_rewards_and_penalties(answer, made, tables):
    """Votes lost what V2 states as missed rewards, plus penalties; all losses add up."""
    problems = made.report.frames["problems"]
    kinds = dict(problems.group_by("kind").agg(pl.sum("cost_gwei")).iter_rows())
    votes = sum(kinds.get(kind, 0) for kind in ("offline", "missed votes", "late votes"))
    exact = sum(tables["missed_reward_events"].select(pl.sum("^.*_missed_gwei$")).row(0))
    exact += tables["income_history"].select(pl.sum(*PENALTIES[:2])).sum_horizontal().item()

    # Six validators show the reward of a full vote of almost every epoch.
    assert exact == pytest.approx(votes, rel=0.01)
    penalties = tables["income_history"]["sync_committee_penalty_gwei"].sum()
    assert 2 * penalties == kinds.get("sync committee", 0)
    parts = [answer[f"{part}_gwei"] for part in ("avoidable", "unavoidable", "unknown")]
    assert problems["cost_gwei"].sum() == answer["lost_gwei"] == sum(parts)
    costs = problems["cost_gwei"]
    assert costs.to_list() == costs.sort(descending=True, nulls_last=True).to_list()


def test_balances_are_those_of_the_last_epoch_of_each_day(made, tables):
    """The balances of the last epoch of each day."""
    last = tables["balance_history"].filter(pl.col("epoch") <= LAST)
    last = last.with_columns(date=pl.col("time").dt.date())
    last = last.filter(pl.col("epoch") == pl.col("epoch").max().over("date"))

    frame = made.report.frames["balances"]

    sums = last.group_by("date").agg(pl.sum("balance_gwei")).sort("date")
    assert sums["balance_gwei"].to_list() == frame["balance_gwei"].to_list()


def test_proposals_and_luck(made, tables):
    """Proposals with their rewards; expected is the share of the stake, slot by slot."""
    frame, blocks = made.report.frames["proposals"], tables["blocks"].sort("slot")

    assert blocks["slot"].unique().to_list() == frame["slot"].to_list()
    paid = dict(tables["execution_blocks"].select("slot", "producer_reward_wei").iter_rows())
    proposed = frame.filter(pl.col("status") == "proposed")
    assert [paid[slot] for slot in proposed["slot"]] == proposed["reward_wei"].to_list()

    luck = made.report.frames["luck"].row(0, named=True)
    day = tables["yield_index"].filter(pl.col("day") == 1).row(0, named=True)
    own = tables["balance_history"].filter(pl.col("epoch") <= LAST)["effective_balance_gwei"].sum()
    expected = 32 * own / (int(day["effective_balances_sum_wei"]) // 10**9)
    assert expected == pytest.approx(luck["expected"])
    assert blocks["slot"].n_unique() == luck["drawn"]


def test_withdrawals_are_summed_per_day(made, tables):
    sums = (
        tables["validator_withdrawals"]
        .group_by(date=pl.col("time").dt.date())
        .agg(pl.sum("amount_gwei"))
        .sort("date")
    )
    frame = made.report.frames["withdrawals"]
    assert sums.rows() == frame.select("date", "withdrawals_gwei").rows()


def test_each_validator_has_its_own_sums(made, tables):
    """Each validator has its own sums, and its group."""
    frame = made.report.frames["validators"]
    income = tables["income_history"].group_by("validator_index").agg(net=NET.sum())

    assert MINE == frame["validator_index"].to_list()
    assert ["A"] * 3 + ["B"] * 3 == frame["group"].to_list()
    assert income.sort("validator_index")["net"].to_list() == (
        frame["consensus_income_gwei"].to_list()
    )
    assert frame["lost_gwei"].sum() == made.report.frames["problems"]["cost_gwei"].sum()


def test_the_value_of_a_group_is_the_mean_of_its_validators(made):
    """The value of a group is the mean of its validators."""
    frame = made.report.frames["groups"].filter(pl.col("measure") == "apr_on_effective")
    validators = made.report.frames["validators"]
    means = validators.group_by("group").agg(pl.mean("apr_on_effective")).sort("group")
    assert means["apr_on_effective"].to_list() == pytest.approx(frame["value"].to_list())


def test_intervals_of_groups_are_within_the_range_of_the_measure():
    """Of two values, the interval is 12.706 (t, 1 degree of freedom) standard errors to each side.

    Those of 0.9 and 1 are 0.95 - 0.635 and + 0.635, those of 0 and 20 are 10 - 127 and + 127. A
    rate may be negative: those of 0.01 and 0.02 are 0.015 - 0.0635 and + 0.0635.
    """
    values = {
        "effectiveness": [0.9, 1.0], "sync_rate": [0.9, 1.0], "apr_on_effective": [0.01, 0.02],
        "votes_missed": [0, 20], "lost_gwei": [0, 20],
    }  # fmt: skip
    table = pl.DataFrame({name: pair * 2 for name, pair in values.items()}).with_columns(
        group=pl.Series(["A", "A", "B", "B"]), votes=100, effective_balance_gwei=32 * 10**9
    )
    one = table.head(1).with_columns(group=pl.lit("C"))

    frames = build_groups(SimpleNamespace(groups=one), {"validators": pl.concat([table, one])})

    rows = frames["groups"].filter(group="A").select("measure", "low", "high").rows()
    assert {
        "effectiveness": (0.315, 1), "sync_rate": (0.315, 1), "apr_on_effective": (-0.0485, 0.0785),
        "votes_missed": (0, 137.06), "lost_gwei": (0, 137.06),
    } == {name: pytest.approx(ends, abs=0.005) for name, *ends in rows}  # fmt: skip
    assert {(None, None)} == {*frames["groups"].filter(group="C").select("low", "high").rows()}


def test_all_balance_changes_reconcile(made):
    """All changes of balance reconcile, and the facts name the source."""
    row = made.report.frames["reconciliation"].row(0, named=True)
    assert row["changes"] == row["explained"] > 0
    facts = dict(made.report.frames["facts"].iter_rows())
    assert ("yes", str(FIRST), str(LAST)) == tuple(
        facts[name] for name in ("simulated", "first epoch", "last epoch")
    )
    assert str(made.report.frames["inputs"]["requests"].sum()) == facts["requests"]
    assert MAINNET.epochs_per_day == 225
