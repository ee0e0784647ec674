"""Problems: what validators lost, when, and which rows say so."""

import polars as pl
import pytest

from beaconframes import analysis
from beaconframes.calendar import MAINNET
from beaconframes.errors import UsageError

from .test_attestation_losses import HEAD, NO_SOURCE, NO_TARGET, SOURCE, TARGET
from .test_attestations import chain_of, duties
from .test_daily_income import stats
from .test_income import history

ETH = 10**9
VOTED = {HEAD: 140, SOURCE: 150, TARGET: 280}
MISSED = {NO_SOURCE: 150, NO_TARGET: 280}
LOST = 2 * (150 + 280) + 140


def validators(*changes):
    rows = [
        {
            "validator_index": index,
            "status": "active_online",
            "slashed": False,
            "balance_gwei": 32 * ETH,
            "effective_balance_gwei": 32 * ETH,
            "exit_epoch": None,
            "withdrawable_epoch": None,
            "withdrawal_credentials": "0x02" + "0" * 62,
            "activation_epoch": 0,
            **change,
        }
        for index, change in enumerate(changes)
    ]
    return pl.DataFrame(
        rows, schema_overrides=dict.fromkeys(["exit_epoch", "withdrawable_epoch"], pl.Int64)
    )


def stakes(income):
    return income.select("validator_index", "epoch", effective_balance_gwei=pl.lit(32 * ETH))


def test_missed_votes_become_times_offline():
    """Three missed epochs in a row are a time offline; others are one row of the validator."""
    missed = {0: (3, 4, 5, 9), 1: (2, 7)}
    income = history(
        *((v, e, MISSED if e in missed[v] else VOTED) for v in missed for e in range(12))
    )

    rows = analysis.problems(validators({}, {}), income, stakes(income))

    assert [
        ("offline", 0, 3, 5, 3, 3 * LOST, True, "validator_index == 0, epoch from 3 to 5"),
        ("missed votes", 1, 2, 7, 2, 2 * LOST, True, "validator_index == 1, epoch from 2 to 7"),
        ("missed votes", 0, 9, 9, 1, LOST, True, "validator_index == 0, epoch == 9"),
    ] == rows.select(
        *("kind", "validator_index", "first_epoch", "last_epoch", "count", "cost_gwei"),
        *("avoidable", "rows"),
    ).rows()
    assert MAINNET.time_of("epoch", 3) == rows["since"][0]
    assert {"votes"} == {*rows["count_unit"]}


def test_late_votes_compare_with_the_network():
    """More late heads than three standard errors above the usual share are avoidable."""
    income = history(
        *((0, e, VOTED | ({HEAD: 0} if e < 12 else {})) for e in range(100)),
        *((1, e, VOTED | ({HEAD: 0} if e < 11 else {})) for e in range(100)),
    )
    network = pl.DataFrame({"valuable_correct_head": [95], "attestations_included": [100]})

    rows = analysis.problems(validators({}, {}), income, stakes(income), network=network)

    assert [(0, 12, 12 * 140, True), (1, 11, 11 * 140, False)] == rows.select(
        "validator_index", "count", "cost_gwei", "avoidable"
    ).rows()
    assert "12 wrong or late head; 12.0 % of votes late (typical: 5.0 %)" == rows["detail"][0]
    alone = analysis.problems(validators({}, {}), income, stakes(income))
    assert [None, None] == alone["avoidable"].to_list()


@pytest.mark.parametrize(("count", "expected"), [(19, None), (20, True)])
def test_the_median_of_twenty_validators_shows_what_is_usual(count, expected):
    """The median of fewer than 20 validators does not show what is usual."""
    late = VOTED | {HEAD: 0}
    income = history(
        *((v, e, late if v == 0 and e < 50 else VOTED) for v in range(count) for e in range(100))
    )

    rows = analysis.problems(validators(*({} for _ in range(count))), income, stakes(income))

    assert [(0, expected)] == rows.select("validator_index", "avoidable").rows()


def test_the_reasons_of_late_and_missed_votes_are_counted():
    """Issue 19, 2: from rewards alone what was lost; with duties and blocks also why."""
    no_head = VOTED | {HEAD: 0}
    no_target = {HEAD: 0, SOURCE: 150, TARGET: 0, NO_TARGET: 280}
    faults = {0: no_head, 1: no_head, 2: no_head, 3: no_target, 5: MISSED, 8: MISSED}
    income = history(*((0, e, faults.get(e, VOTED)) for e in range(12)))
    # Epoch 0: included in the next slot. 1: slot 33 has no block. 2: one block did not include it.
    made = duties((0, 0, 1), (0, 32, 34), (0, 64, 66), (0, 160, None), (0, 256, None))
    text = ["p"] * 400
    text[33] = "m"
    text[161:256] = "m" * 95

    alone = analysis.problems(validators({}), income, stakes(income))
    explained = analysis.problems(
        validators({}), income, stakes(income), attestations=made, slots=chain_of(0, "".join(text))
    )

    details = {row["kind"]: row["detail"] for row in alone.rows(named=True)}
    assert {"late votes": "3 wrong or late head, 1 wrong target", "missed votes": ""} == details
    details = {row["kind"]: row["detail"] for row in explained.rows(named=True)}
    assert {
        "late votes": "1 included late, 1 included late after a missing block, 1 wrong head, "
        "1 wrong target",
        "missed votes": "1 missed although blocks were proposed, "
        "1 missed without a block to include it",
    } == details


def test_states_of_validators():
    """Slashings, pending exits, low balances and credentials; several validators share a row."""
    table = validators(
        {"slashed": True, "exit_epoch": 50, "withdrawable_epoch": 8000},
        {"exit_epoch": 200},
        {"effective_balance_gwei": 30 * ETH},
        {"withdrawal_credentials": "0x00" + "0" * 62},
        {"withdrawal_credentials": "0x01" + "0" * 62},
        {"withdrawal_credentials": "0x01" + "0" * 62},
        {"exit_epoch": 20, "status": "exited", "withdrawal_credentials": "0x01" + "0" * 62},
    )
    income = history((0, 40, {"slashing_penalty_gwei": 7 * ETH}))

    rows = analysis.problems(table, income, stakes(income), epoch=100)

    assert [
        ("slashed", 0, 1, 7 * ETH, 1, "penalties"),
        ("exiting", 1, 1, 0, None, None),
        ("low balance", 2, 1, 0, None, None),
        ("BLS credentials", 3, 1, None, 1, "validators"),
        ("not compounding", None, 2, None, 2, "validators"),
    ] == rows.select(
        *("kind", "validator_index", "validators", "cost_gwei", "count", "count_unit")
    ).rows()


def test_a_slashing_costs_the_penalties_after_the_exit_too():
    """Until the exit, missed votes cost more: their rewards, too. A seat is a problem by itself."""
    table = validators({"slashed": True, "exit_epoch": 50, "withdrawable_epoch": 8000}, {})
    seat = {"sync_committee_penalty_gwei": 9}
    income = history(
        *((0, e, VOTED if e < 48 else MISSED) for e in range(52)),
        (0, 52, MISSED | seat | {"finality_delay_penalty_gwei": 5, "slashing_penalty_gwei": ETH}),
        *((1, e, VOTED) for e in range(53)),
    )

    rows = analysis.problems(table, income, stakes(income))

    assert [
        ("slashed", 50, 52, 3 * (150 + 280) + 5 + ETH),
        ("missed votes", 48, 49, 2 * LOST),
        ("sync committee", 52, 52, 2 * 9),
    ] == rows.select("kind", "first_epoch", "last_epoch", "cost_gwei").rows()


def test_a_slashing_outside_of_the_range_cost_nothing_in_it():
    """Its penalties are in the income, or before the day on which the balance could be withdrawn.

    Unknown costs would make the sum of all costs unknown, for ever.
    """
    table = validators({"slashed": True, "exit_epoch": 50, "withdrawable_epoch": 450})
    none, days = history((0, 500, {})), stats((0, {"day": 1}), (0, {"day": 2}))
    days = days.with_columns(time=MAINNET.time_expr("day", pl.col("day")))

    (by_epoch,) = analysis.problems(table, none, stakes(none)).filter(kind="slashed")["cost_gwei"]
    (after,) = analysis.problems(table, stats=days[1:]).filter(kind="slashed")["cost_gwei"]
    (during,) = analysis.problems(table, stats=days).filter(kind="slashed")["cost_gwei"]

    assert (0, 0, None) == (by_epoch, after, during)


def test_consolidation_needs_one_address_and_256_active_epochs():
    """Issue 19, 2: validators of one withdrawal address, active long enough, that do not exit."""
    one, other = ("0x01" + "0" * 22 + digit * 40 for digit in "ab")
    compounding = "0x02" + one[4:]
    table = validators(
        *[{"withdrawal_credentials": one, "activation_epoch": epoch} for epoch in (0, 744, 745)],
        {"withdrawal_credentials": compounding, "effective_balance_gwei": 1000 * ETH},
        {"withdrawal_credentials": other},
        {"withdrawal_credentials": one, "exit_epoch": 2000},
    )
    table = table.with_columns(pl.col("activation_epoch").fill_null(0))

    rows = analysis.problems(table, epoch=1000).filter(pl.col("kind") == "consolidation possible")

    (row,) = rows.rows(named=True)
    assert (None, 3, 3, None) == tuple(
        row[name] for name in ("validator_index", "validators", "count", "cost_gwei")
    )
    assert "0x" + "a" * 40 in row["detail"]
    assert "3 validators with 1,064 ETH fit into 1" in row["detail"]
    assert "validators" == row["table"]
    assert 'withdrawal_credentials ends with "' + "a" * 40 in row["rows"]
    assert "activation_epoch <= 744" in row["rows"]


def signed(rate):
    """A member of a sync committee that signed this share of 1000 slots."""
    part = {"sync_committee_reward_gwei": round(1000 * rate)}
    return part | {"sync_committee_penalty_gwei": round(1000 * (1 - rate))}


def test_sync_members_as_good_as_usual_are_no_problem():
    """Without a network to compare, 98 % signed is usual, and below it the fault is unknown."""
    income = history((0, 5, signed(0.996)), (1, 5, signed(0.97)))
    network = pl.DataFrame(
        {
            "valuable_correct_head": [95],
            "attestations_included": [100],
            "sync_committee_successful": [999],
            "sync_committee_assigned": [1000],
            "proposals_successful": [None],
            "proposals_assigned": [None],
        },
        schema_overrides={"proposals_successful": pl.Int64, "proposals_assigned": pl.Int64},
    )

    alone = analysis.problems(validators({}, {}), income, stakes(income))
    compared = analysis.problems(validators({}, {}), income, stakes(income), network=network)

    duty = pl.col("kind") == "sync committee"
    assert [(0, False), (1, None)] == (
        alone.filter(duty).sort("validator_index").select("validator_index", "avoidable").rows()
    )
    assert "signed 99.6 % in period 0" in alone["detail"].to_list()
    # 32 slots are too few to tell 99.6 % from 99.9 %, but not 97 %.
    assert [(0, False), (1, True)] == (
        compared.filter(duty).sort("validator_index").select("validator_index", "avoidable").rows()
    )
    for unknown in (
        network.clear(),
        network.with_columns(pl.lit(None, pl.Int64).alias("sync_committee_successful")),
    ):
        found = analysis.problems(validators({}, {}), income, stakes(income), network=unknown)
        assert alone.filter(duty).equals(found.filter(duty))


@pytest.mark.parametrize(
    ("proposed", "typical", "avoidable"), [(98, "99.0", True), (97, "97.0", False)]
)
def test_slots_without_a_block_are_no_missed_sync_duties(proposed, typical, avoidable):
    """The network signed 9,702 of 10,000 duties, and 98 of 100 slots have a block: 99 % of 9,800.

    In 12 epochs of 32 slots, three standard errors are 1.5 %. With 97 blocks, more than all would
    be signed: such counts have no slots without a block.
    """
    income = history(*((0, epoch, signed(0.96)) for epoch in range(12)))
    network = pl.DataFrame(
        {
            "valuable_correct_head": [95],
            "attestations_included": [100],
            "sync_committee_successful": [9_702],
            "sync_committee_assigned": [10_000],
            "proposals_successful": [proposed],
            "proposals_assigned": [100],
        }
    )

    rows = analysis.problems(validators({}), income, stakes(income), network=network)

    duty = rows.filter(pl.col("kind") == "sync committee").row(0, named=True)
    assert f"signed 96.0 % in period 0 (typical: {typical} %)" == duty["detail"]
    assert avoidable == duty["avoidable"]


def test_sync_duties_of_daily_statistics_have_their_share():
    table = stats(
        (0, {"participated_sync": 996, "missed_sync": 4}),
        (1, {"participated_sync": 900, "missed_sync": 100}),
    )

    rows = analysis.problems(validators({}, {}), stats=table)

    rows = rows.filter(pl.col("kind") == "sync committee").sort("validator_index")
    assert [(0, False, 4, "duties"), (1, None, 100, "duties")] == (
        rows.select("validator_index", "avoidable", "count", "count_unit").rows()
    )
    assert "signed 90.0 %, on 1 day" == rows["detail"][1]


def test_missed_proposals_have_the_cost_of_other_blocks():
    """A missed proposal costs what another block earned; an orphaned one may be chance."""
    income = history(
        (
            1,
            100,
            {"proposer_attestation_inclusion_reward_gwei": 5000, "tx_fee_reward_wei": 3 * 10**12},
        ),
        (0, 101, {}),
    )
    proposals = pl.DataFrame(
        {
            "slot": [3203, 3239],
            "epoch": [100, 101],
            "time": [MAINNET.time_of("slot", slot) for slot in (3203, 3239)],
            "status": ["missed", "orphaned"],
            "proposer_index": [0, 0],
        },
        schema_overrides={"time": pl.Datetime("us", "UTC")},
    )

    rows = analysis.problems(validators({}, {}), income, stakes(income), proposals=proposals)

    with pytest.raises(UsageError, match="no column time"):
        analysis.problems(validators({}, {}), proposals=proposals.drop("time"))
    assert [
        ("missed proposal", 0, 8000, True, "slot == 3203", "slots"),
        ("orphaned proposal", 0, 8000, None, "slot == 3239", "slots"),
    ] == rows.select(
        "kind", "validator_index", "cost_gwei", "avoidable", "rows", "count_unit"
    ).rows()
