"""Validator performance: one row per validator or group, equal to the single functions."""

import math
from decimal import Decimal

import polars as pl
import pytest

from beaconframes import analysis
from beaconframes.errors import UsageError

from ..support.engines import assert_equal
from .test_income import history
from .test_proposals import blocks as proposals

ETH = 10**9
_KEYS = ["validator_index", "epoch"]


@pytest.fixture(scope="module")
def frames(chain):
    """Two dozen peers over 120 epochs of the simulated chain, with all frames."""
    span = pl.col("epoch").is_between(340, 459)
    peers = pl.col("validator_index") < 24
    blocks = chain.scan("blocks").filter(span)
    tables = {
        "validators": chain.scan("validators").filter(pl.col("validator_index") < 4),
        "income": chain.scan("income_history").filter(span, peers),
        "balances": chain.scan("balance_history").filter(span, peers),
        "attestations": chain.scan("attestations").filter(span, peers),
        "proposals": blocks.filter(pl.col("proposer_index") < 24),
        "slots": blocks,
        "committees": chain.scan("sync_committees"),
        "epochs": chain.scan("epochs").filter(span),
        "index": chain.scan("yield_index"),
    }
    return {name: table.collect() for name, table in tables.items()}


@pytest.mark.more
def test_each_column_matches_its_function(frames):
    """Income, rates, attestations, luck and signatures equal the results of their functions."""
    rows = analysis.performance(**frames, until=459)

    mine = pl.col("validator_index") < 4
    one = {"by": "validator_index"}
    income = frames["income"].filter(mine)
    sums = analysis.income(income, every="all", **one)
    rates = analysis.apr(
        income,
        frames["balances"],
        frames["index"],
        every="all",
        validators=frames["validators"],
        **one,
    )
    duties = analysis.attestation_effectiveness(
        frames["attestations"].filter(mine), frames["slots"], until=459
    )
    luck = analysis.proposal_luck(
        frames["proposals"],
        frames["balances"].filter(mine),
        frames["epochs"],
        validators=frames["validators"],
    )
    assert [0, 1, 2, 3] == rows["validator_index"].to_list()
    assert [1] * 4 == rows["validators"].to_list()
    for part, prefix, names in [
        (sums, "", ["net_income_wei", "validator_epochs", "proposals_missed"]),
        (rates, "", ["apr_on_32_eth", "apr_as_index", "difference_bp"]),
        (duties, "attestations_", ["late", "mean_distance", "effectiveness_possible"]),
        (luck, "proposals_", ["expected", "drawn", "luck", "luck_high", "p_value"]),
    ]:
        for name in names:
            assert_equal(part.select(name), rows.select(pl.col(prefix + name).alias(name)))
    everyone = analysis.apr(frames["income"], frames["balances"], every="all")
    peers = everyone["apr_on_effective"].item()
    assert [peers] * 4 == rows["peers_apr"].to_list()


def test_signatures_of_members(frames):
    """Without a seat there are no duties and no rate; members also have the committee rate."""
    members = analysis.sync_against_committee(frames["slots"], frames["committees"])
    everyone = frames["validators"].with_columns(all=pl.lit("all"))

    (row,) = analysis.performance(**frames | {"validators": everyone}, by="all").iter_rows(
        named=True
    )

    mine = members.filter(pl.col("validator_index") < 4)
    assert (mine["duties"].sum(), mine["signed"].sum()) == (row["sync_duties"], row["sync_signed"])
    if row["sync_duties"]:
        weighed = (mine["committee_rate"] * mine["duties"]).sum() / mine["duties"].sum()
        assert math.isclose(weighed, row["sync_committee_rate"], rel_tol=1e-12)


def test_the_ceiling_by_hand():
    """Of 20 comparable validators two are the best decile; the lesser of them is the ceiling."""
    rewards = [*range(100, 118), 500, 900]
    earned = history(
        *((i, 5, {"attestation_target_reward_gwei": gwei}) for i, gwei in enumerate(rewards)),
        (20, 5, {"attestation_head_reward_gwei": 7, "attestation_source_penalty_gwei": 9}),
        (0, 6, {"attestation_head_reward_gwei": 40, "sync_committee_reward_gwei": 1000}),
    )
    held = pl.DataFrame(
        [*((i, 5, 32 * ETH) for i in range(20)), (20, 5, 2048 * ETH), (0, 6, 32 * ETH)],
        schema=["validator_index", "epoch", "effective_balance_gwei"],
        orient="row",
    )
    lives = pl.DataFrame(
        {
            "validator_index": [0, 19, 20],
            "activation_epoch": [0, 0, 0],
            "exit_epoch": pl.Series([None] * 3, dtype=pl.Int64),
        }
    )

    rows = analysis.performance(lives, earned, held)

    columns = ["attestation_income_gwei", "attestation_ceiling_gwei", "attestation_score"]
    assert [(140, 540, 140 / 540), (900, 500, 1.8), (-2, -2, None)] == rows.select(columns).rows()


def test_groups_by_withdrawal_address(frames):
    """Both kinds of credentials with an address are one group; BLS credentials are null."""
    address = "ab" * 20
    credentials = ["0x01" + "00" * 11 + address, "0x02" + "00" * 11 + address]
    credentials += ["0x00" + "11" * 31, "0x01" + "00" * 11 + "cd" * 20]
    lives = frames["validators"].with_columns(withdrawal_credentials=pl.Series(credentials))

    rows = analysis.performance(
        lives, frames["income"], frames["balances"], by="withdrawal_address"
    )

    found = dict(rows.select("withdrawal_address", "validators").iter_rows())
    assert {None: 1, "0x" + address: 2, "0x" + "cd" * 20: 1} == found
    assert None not in rows["net_income_wei"].to_list()
    total = frames["income"].filter(pl.col("validator_index") < 4)
    assert analysis.income(total, every="all")["net_income_wei"].item() == sum(
        rows["net_income_wei"], start=Decimal(0)
    )


def test_the_cost_of_missed_proposals_by_hand():
    """Pool a has two, at the median of the blocks nearby; pool b none; that of c is unknown."""
    lives = pl.DataFrame(
        {
            "validator_index": [1, 2, 3],
            "activation_epoch": [0] * 3,
            "exit_epoch": pl.Series([None] * 3, dtype=pl.Int64),
            "pool": ["a", "b", "c"],
        }
    )
    earned = history(
        *(
            (who, 2, {"proposer_sync_inclusion_reward_gwei": gwei, "tx_fee_reward_wei": 10})
            for who, gwei in enumerate([300, 100, 200])
        ),
        (3, 500, {}),
    )
    held = earned.select(*_KEYS, effective_balance_gwei=pl.lit(32 * ETH))
    blocks = proposals(
        (0, "missed", 1), (1, "orphaned", 1), (2, "proposed", 2), (500 * 32, "missed", 3)
    )
    epochs = pl.DataFrame({"epoch": [2, 500], "eligible_ether_gwei": [96 * ETH] * 2})

    rows = analysis.performance(
        lives, earned, held, proposals=blocks, epochs=epochs, by="pool"
    ).select("pool", "proposals_lost_wei")

    assert [("a", 2 * (200 * ETH + 10)), ("b", 0), ("c", None)] == rows.rows()


def test_wrong_arguments_are_explained(frames):
    """A missing group column, and no group column."""
    few = [frames[name] for name in ("validators", "income", "balances")]
    with pytest.raises(UsageError, match="no column pool"):
        analysis.performance(*few, by="pool")
    with pytest.raises(UsageError, match="by is empty"):
        analysis.performance(*few, by=())


def test_validators_without_income_have_no_figures(frames):
    """Before their activation, only the epochs show which chain this is."""
    given = frames | {n: frames[n].clear() for n in ("income", "balances", "proposals")}
    given = {n: given[n] for n in ("validators", "income", "balances", "proposals", "epochs")}

    rows = analysis.performance(**given)

    assert [(None, None)] * 4 == rows.select("net_income_wei", "proposals_expected").rows()


def test_balances_are_joined_once(frames):
    """F2: a lazy frame of balances is read once for rates and ceilings."""
    reads = []

    def read(rows):
        reads.append(rows.height)
        return rows

    given = {name: frames[name] for name in ("validators", "income", "balances")}
    lazy = frames["balances"].lazy().map_batches(read, schema=frames["balances"].schema)

    rows = analysis.performance(**given | {"income": frames["income"].lazy(), "balances": lazy})

    assert 1 == len(reads)
    assert_equal(analysis.performance(**given), rows.collect())


def test_a_validator_in_several_groups_counts_once_in_each(frames):
    """F2: a second label of a validator changes neither rate nor luck of its first group."""
    labels = pl.DataFrame({"validator_index": [0, 1, 0], "pool": ["a", "a", "b"]})
    given = {name: frames[name] for name in ("income", "balances", "proposals", "epochs")}
    columns = ["apr_on_effective", "apr_as_index", "validators", "proposals_expected"]

    def summarize(rows):
        validators = frames["validators"].join(rows, on="validator_index")
        found = analysis.performance(validators, **given, by="pool")
        return found.filter(pool="a").select(columns)

    assert_equal(summarize(labels.head(2)), summarize(labels))


@pytest.mark.more
def test_a_missing_amount_leaves_the_score_of_the_other_amounts(frames):
    """F2: a row without fees counts for the attestation score, and not for rates."""
    missing = pl.when(pl.col("validator_index") > 0).then("tx_fee_reward_wei")
    income = frames["income"].with_columns(missing.alias("tx_fee_reward_wei"))

    rows = analysis.performance(frames["validators"], income, frames["balances"])

    complete = analysis.performance(frames["validators"], frames["income"], frames["balances"])
    assert_equal(complete.select("attestation_score"), rows.select("attestation_score"))
    assert [True, False, False, False] == rows["apr_on_effective"].is_null().to_list()
