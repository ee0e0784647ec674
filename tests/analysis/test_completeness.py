"""Which rows are present, and why others are missing."""

import polars as pl
import pytest

from beaconframes import analysis
from beaconframes.errors import UsageError

from ..support.engines import assert_equal

LIVES = pl.DataFrame(
    {
        "validator_index": [1, 2, 3, 4],
        "activation_epoch": [0, 11, 0, None],
        "exit_epoch": [None, None, 12, None],
    },
    schema_overrides={"activation_epoch": pl.Int64, "exit_epoch": pl.Int64},
)
ROWS = pl.DataFrame(
    [(1, 10), (1, 12), (1, 13), (2, 12), (3, 10), (3, 11), (3, 12), (9, 11), (1, 99)],
    schema=["validator_index", "epoch"],
    orient="row",
)
STATES = {
    1: ["present", "missing", "present", "present"],
    2: ["inactive", "missing", "present", "not final"],
    3: [
        "present",
        "present",
        "present",
        "inactive",
    ],  # a row counts, in spite of the exit in epoch 12
    4: ["inactive"] * 4,
}
EXPECTED = pl.DataFrame(
    [
        (validator, epoch, state)
        for validator, states in STATES.items()
        for epoch, state in enumerate(states, start=10)
    ],
    schema=["validator_index", "epoch", "state"],
    orient="row",
)


def test_states_by_hand():
    """Four validators in four epochs: each state occurs; other validators have no rows."""
    result = analysis.completeness(ROWS, LIVES, since=10, until=13, finalized=12)

    assert_equal(EXPECTED, result)


def test_the_range_is_that_of_the_frame():
    """By default, the first and the last epoch are looked up; without *finalized* all are final."""
    rows = analysis.completeness(ROWS.filter(pl.col("epoch") < 99), LIVES)

    assert [10, 13] == [rows["epoch"].min(), rows["epoch"].max()]
    assert {"present", "missing", "inactive"} == set(rows["state"])
    assert 0 == analysis.completeness(ROWS.clear(), LIVES).height


def test_the_simulated_chain_is_complete(chain):
    """Every active validator has income up to the final epoch; later rows are not final."""
    latest, finalized = chain.meta["latest_epoch"], chain.meta["finalized_epoch"]

    rows = analysis.completeness(
        chain.scan("income_history"),
        chain.scan("validators"),
        since=finalized - 40,
        until=latest,
        finalized=finalized,
    ).collect()

    assert 1010 * (latest - finalized + 41) == rows.height
    assert 0 == rows.filter(pl.col("state") == "missing").height
    final = pl.col("epoch") <= finalized
    assert {"present", "inactive"} == set(rows.filter(final)["state"])
    assert {"not final", "inactive"} == set(rows.filter(~final)["state"])


@pytest.mark.parametrize(
    ("column", "end"), [("balance_gwei", 40), ("attester_slot", 12), ("net_gwei", 39)]
)
def test_a_slashed_validator_has_rows_until_its_penalties_end(column, end):
    """G1: the rule of the consensus specification, for balances, duties and income."""
    slashed = pl.DataFrame(
        {"validator_index": [3], "activation_epoch": [0], "exit_epoch": [12], "slashed": [True],
         "withdrawable_epoch": [40]}
    )  # fmt: skip
    rows = pl.DataFrame({"validator_index": [3], "epoch": [10], column: [1]})

    states = analysis.completeness(rows, slashed, since=10, until=41)

    assert [10 + 1, end - 1] == (
        states.filter(state="missing")["epoch"].sort().gather([0, -1]).to_list()
    )


def test_wrong_frames_are_explained():
    """The missing columns of both frames are named."""
    with pytest.raises(UsageError, match="no column epoch"):
        analysis.completeness(LIVES, LIVES)
    with pytest.raises(UsageError, match="no column activation_epoch"):
        analysis.completeness(ROWS, ROWS)
