"""Rows that occur twice, as in loads that overlap: an error, not a doubled sum."""

from datetime import UTC, datetime

import polars as pl
import pytest

from beaconframes import analysis, interactive, plot
from beaconframes.analysis.engines import check_distinct
from beaconframes.errors import UsageError
from beaconframes.pandas_frames import to_pandas

from .test_apr import EARNED, HELD, INDEX
from .test_attestations import ROWS as DUTIES
from .test_daily_income import stats
from .test_engines import BOOK, EVERYTHING, FOUND, LIVES, UPCOMING
from .test_income import history
from .test_ledger import paid
from .test_problems import stakes
from .test_proposals import BLOCKS as OWN
from .test_proposals import COMMITTEES
from .test_reconciliation import EARNED as EXPLAINED
from .test_reconciliation import HELD as BALANCED
from .test_reconciliation import WITHDRAWALS, balances
from .test_sync_duties import BLOCKS as SLOTS
from .test_sync_duties import COMMITTEES as SEATS

REWARD = {"attestation_head_reward_gwei": 5}
EARLY = history(*((v, e, REWARD) for v in (7, 11) for e in range(10)))
LATE = history(*((v, e, REWARD) for v in (7, 11) for e in range(8, 20)))
KINDS = [lambda frame: frame, to_pandas, pl.DataFrame.to_arrow]
PAID = paid((7, datetime(2020, 12, 2, tzinfo=UTC), 3)).with_columns(withdrawal_index=pl.lit(1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("orders", [["validator_index", "epoch"], ["epoch", "validator_index"], []])
def test_overlapping_loads_are_refused(kind, orders):
    """In any order of the rows; the message has a row and the call that removes them."""
    both = pl.concat([EARLY, LATE])
    both = both.sort(orders) if orders else both.sample(fraction=1, shuffle=True, seed=1)

    with pytest.raises(UsageError, match=r"8 rows .* validator_index (7|11), epoch (8|9) occurs 2"):
        analysis.income(kind(both), coverage=True)


@pytest.mark.parametrize("place", [0, 16_383, 16_384, 16_385, 32_767, 32_768, 39_998])
def test_one_repeated_row_of_many_is_found(place):
    """In sorted rows, at any place: they are compared in parts of 16,384 rows."""
    numbers = pl.int_range(40_000, eager=True)
    rows = pl.DataFrame({"validator_index": numbers // 20_000, "epoch": numbers % 20_000})
    check_distinct(rows, ["validator_index", "epoch"], loader="load_income_history")

    repeated = pl.concat([rows[: place + 1], rows[place:]])

    with pytest.raises(UsageError, match="2 rows"):
        check_distinct(repeated, ["validator_index", "epoch"], loader="load_income_history")


@pytest.mark.parametrize("kind", KINDS)
def test_loads_that_follow_each_other_are_added_up(kind):
    """Rows that are not sorted are not repeated."""
    later = LATE.filter(pl.col("epoch") >= 10)
    for rows in (pl.concat([EARLY, later]), pl.concat([later, EARLY])):
        found = analysis.income(kind(rows), every="all")

        total = found["consensus_income_gwei"]
        assert 2 * 20 * 5 == (total[0].as_py() if kind is KINDS[2] else total[0])


def test_a_validator_may_be_in_several_groups():
    """Each label counts it; twice in one label is an error."""
    labels = pl.DataFrame({"validator_index": [7, 7, 11], "label": ["a", "b", "b"]})

    sums = analysis.income(EARLY.join(labels, "validator_index"), every="all", by="label")

    assert {"a": 50, "b": 100} == dict(sums.select("label", "consensus_income_gwei").iter_rows())
    twice = EARLY.join(pl.concat([labels, labels]), "validator_index")
    with pytest.raises(UsageError, match=r"60 rows .* repeat each other"):
        analysis.income(twice, every="all", by="label")


DATED = LATE.select("validator_index", "epoch", "time", balance_gwei=5, effective_balance_gwei=5)
BALANCES = balances((7, 0, 5), (7, 1, 5))
EPOCHS = pl.DataFrame({"epoch": [0, 1], "eligible_ether_gwei": [10**12, 10**12]})
SEEN = pl.DataFrame(
    {"validator_index": [7], "activation_epoch": [0], "exit_epoch": [None]},
    schema_overrides={"exit_epoch": pl.Int64},
)
PRODUCED = pl.DataFrame(
    {
        "block_number": [9, 10],
        "proposer_index": [1, 1],
        "epoch": [675, 676],
        "producer_reward_wei": [5, 6],
        "block_reward_wei": [5, 6],
        "relay_tag": ["a", None],
    }
)
RATED = analysis.daily_income(stats((1, {})), PRODUCED)
COUNTED = stats((1, {"missed_attestations": 3, "missed_sync": 1, "participated_sync": 9}))
PAID_V2 = pl.DataFrame(
    {"slot": [9], "validator_index": [7], "type": ["x"], "nth": [0], "amount_gwei": [3]}
)
DEPOSITED = pl.DataFrame(
    {"block_slot": [9], "block_root": ["0xa"], "block_index": [0], "amount_gwei": [3]}
).with_columns(validator_index=7)
PAID_IN_SLOTS = pl.DataFrame(
    {"slot": [32], "validator_index": [7], "kind": ["sync_committee"], "amount_gwei": [3]}
)
MOVED = pl.DataFrame({"source_index": [7], "target_index": [8], "epoch": [1], "amount_gwei": [3]})
PLANNED = pl.DataFrame({"duty": ["proposal"], "slot": [9], "validator_index": [1]})


def twice(frame):
    return pl.concat([frame, frame])


@pytest.mark.parametrize(
    "use",
    {
        "rates of votes": lambda: analysis.attestation_rates(twice(LATE)),
        "lost votes, income": lambda: analysis.attestation_losses(twice(LATE), stakes(LATE)),
        "lost votes, balances": lambda: analysis.attestation_losses(LATE, twice(stakes(LATE))),
        "sync income": lambda: analysis.sync_income(twice(LATE)),
        "effectiveness": lambda: analysis.attestation_effectiveness(twice(DUTIES)),
        "faults": lambda: analysis.attestation_faults(twice(DUTIES)),
        "luck, balances": lambda: analysis.proposal_luck(OWN, twice(stakes(LATE)), EPOCHS),
        "luck, epochs": lambda: analysis.proposal_luck(OWN, stakes(LATE), twice(EPOCHS)),
        "luck, validators": lambda: analysis.proposal_luck(
            OWN, stakes(LATE), EPOCHS, validators=twice(SEEN)
        ),
        "luck of seats": lambda: analysis.sync_luck(COMMITTEES, twice(stakes(LATE)), EPOCHS),
        "daily balances": lambda: analysis.daily_balances(twice(DATED)),
        "changes, balances": lambda: analysis.reconcile(twice(BALANCES), LATE),
        "changes, income": lambda: analysis.reconcile(BALANCES, twice(LATE)),
        "daily losses": lambda: analysis.daily_losses(twice(COUNTED)),
        "daily votes": lambda: analysis.daily_votes(twice(COUNTED), SEEN),
        "daily votes, validators": lambda: analysis.daily_votes(COUNTED, twice(SEEN)),
        "daily sync": lambda: analysis.daily_sync(twice(COUNTED)),
        "apr, income": lambda: analysis.apr(pl.concat([EARLY, LATE]), stakes(LATE)),
        "apr, balances": lambda: analysis.apr(LATE, pl.concat([stakes(LATE), stakes(LATE)])),
        "ledger": lambda: analysis.ledger(LATE, pl.concat([PAID, PAID])),
        "apr, validators": lambda: analysis.apr(EARNED, HELD, validators=twice(SEEN)),
        "apr, index": lambda: analysis.apr(EARNED, HELD, twice(INDEX)),
        "daily income": lambda: analysis.daily_income(stats((1, {}), (1, {}))),
        "daily income, blocks": lambda: analysis.daily_income(stats((1, {})), twice(PRODUCED)),
        "daily rates": lambda: analysis.daily_rates(twice(RATED)),
        "daily rates, index": lambda: analysis.daily_rates(RATED, twice(INDEX)),
        "payments of relays": lambda: analysis.relay_payments(twice(PRODUCED)),
        "performance": lambda: analysis.performance(
            **{**EVERYTHING, "validators": twice(LIVES)}, by="pool"
        ),
        "performance, attestations": lambda: analysis.performance(
            **{**EVERYTHING, "attestations": twice(DUTIES)}
        ),
        "performance, committees": lambda: analysis.performance(
            **{**EVERYTHING, "committees": twice(SEATS)}
        ),
        "sync duties": lambda: analysis.sync_duties(SLOTS, twice(SEATS)),
        "sync members": lambda: analysis.sync_members(SLOTS, twice(SEATS)),
        "sync participation": lambda: analysis.sync_participation(SLOTS, twice(SEATS)),
        "changes, withdrawals": lambda: analysis.reconcile(
            BALANCES, LATE, withdrawals=twice(PAID.with_columns(slot=9))
        ),
        "changes, withdrawals of V2": lambda: analysis.reconcile(
            BALANCES, LATE, withdrawals=twice(PAID_V2)
        ),
        "changes, deposits": lambda: analysis.reconcile(BALANCES, LATE, deposits=twice(DEPOSITED)),
        "changes, income by slot": lambda: analysis.reconcile(
            BALANCES, LATE, slot_income=twice(PAID_IN_SLOTS)
        ),
        "changes, consolidations": lambda: analysis.reconcile(
            BALANCES, LATE, consolidations=twice(MOVED)
        ),
        "tax rows": lambda: analysis.tax_rows(twice(BOOK), "koinly"),
        "totals of a ledger": lambda: analysis.ledger_totals(twice(BOOK)),
        "years of a ledger": lambda: analysis.yearly_totals(twice(BOOK)),
        "totals of problems": lambda: analysis.problem_totals(twice(FOUND)),
        "incidents": lambda: analysis.incidents(twice(FOUND)),
        "upcoming, validators": lambda: analysis.upcoming_duties(twice(UPCOMING)),
        "upcoming, duties": lambda: analysis.upcoming_duties(UPCOMING, duties=twice(PLANNED)),
        "chart": lambda: plot.income(pl.concat([EARLY, LATE])),
        "interactive chart": lambda: interactive.income(pl.concat([EARLY, LATE])),
        "chart of withdrawals": lambda: plot.withdrawals(pl.concat([PAID, PAID])),
    }.items(),
    ids=lambda item: item[0],
)
def test_other_sums_refuse_repeated_rows(use):
    """Income, balances, withdrawals and daily statistics."""
    with pytest.raises(UsageError, match=r"repeat each other.*frame\.unique\(\["):
        use[1]()


def test_rows_without_a_key_may_repeat():
    """Advice of two periods, a validator with two labels, and events of the user's own frames."""
    advice = FOUND.with_columns(validator_index=pl.lit(None, pl.Int64))
    labels = pl.DataFrame({"validator_index": [1, 1], "label": ["a", "b"]})

    assert 2 * advice.height == analysis.problem_totals(twice(advice), by=())["problems"][0] > 0
    labelled = BOOK.join(labels, "validator_index")
    assert ["a", "b"] == analysis.ledger_totals(labelled, by="label")["label"].to_list()
    rows = analysis.reconcile(BALANCED, EXPLAINED, withdrawals=twice(WITHDRAWALS))
    assert 2 * 59 == rows["withdrawals_gwei"].sum()
    seats = twice(PAID_IN_SLOTS.drop("kind"))
    analysis.reconcile(BALANCED, EXPLAINED, withdrawals=WITHDRAWALS, slot_income=seats)
