"""Test simulated validators: status, activation, exit and last state."""

import math

import polars as pl

from ..support.simulated_chain import ETH, KEY, assert_empty


def test_exits_and_slashings_set_exit_and_withdrawable_epochs(simulated):
    """Five epochs to the exit, 256 more to withdrawal; slashed validators wait longer."""
    exits = pl.concat(
        [
            simulated.exit_events.select("validator_index", "slot", wait=256 + 5),
            simulated.slashing_events.select("validator_index", "slot", wait=simulated.vector),
        ]
    )
    rows = simulated.validators.join(exits, "validator_index")
    requested = pl.col("slot") // 32

    assert exits.height == rows.height
    assert_empty(rows.filter(pl.col("exit_epoch") != requested + 5))
    assert_empty(rows.filter(pl.col("withdrawable_epoch") != requested + pl.col("wait")))
    left = simulated.validators.filter(
        (pl.col("exit_epoch") > simulated.first) & ~pl.col("validator_index").is_in(
            exits["validator_index"].to_list()
        )
    )  # fmt: skip
    assert_empty(left)


def test_all_exits_are_voluntary_or_slashings(simulated):
    """Validators exit five epochs after a voluntary exit; all others that exit are slashed."""
    rows = simulated.voluntary_exits.join(simulated.validators, KEY[0])

    assert rows.height == simulated.voluntary_exits.height > 2
    assert_empty(rows.filter(pl.col("epoch") != pl.col("block_slot") // 32))
    assert_empty(rows.filter(pl.col("exit_epoch") != pl.col("epoch") + 5))
    leaving = simulated.validators.filter(pl.col("exit_epoch") > simulated.first)
    others = leaving.join(rows, KEY[0], how="anti")
    assert others["slashed"].all()


def test_at_most_four_validators_per_epoch_are_activated(simulated):
    """New validators are eligible, then active; four per epoch at most, in their order."""
    rows = simulated.validators.filter(pl.col("activation_eligibility_epoch") > simulated.first)
    seen = simulated.balance_history.group_by("validator_index").agg(
        rich=pl.col("epoch").filter(pl.col("effective_balance_gwei") >= 32 * ETH).min()
    )
    rows = rows.join(seen, "validator_index").sort("activation_eligibility_epoch", KEY[0])

    assert rows.height >= 2
    assert_empty(rows.filter(pl.col("activation_eligibility_epoch") != pl.col("rich") + 1))
    active = rows.filter(pl.col("activation_epoch").is_not_null())
    wait = pl.col("activation_epoch") - pl.col("activation_eligibility_epoch")
    assert_empty(active.filter(wait < 7))
    assert active["activation_epoch"].is_sorted()
    assert active.group_by("activation_epoch").len()["len"].max() <= 4


def test_status_follows_from_epochs_slashing_and_attestations(simulated):
    """The status follows from epochs, slashing and the last attestation."""
    newest = simulated.validators["last_attestation_slot"].max()
    for row in simulated.validators.to_dicts():
        offline = (row["last_attestation_slot"] or 0) < newest - 64
        end = "offline" if offline else "online"
        if (row["exit_epoch"] or math.inf) <= simulated.latest:
            expected = "slashed" if row["slashed"] else "exited"
        elif row["activation_eligibility_epoch"] is None:
            expected = "deposited"
        elif (row["activation_epoch"] or 2**62) > simulated.latest and row["activation_epoch"] != 0:
            expected = "pending"
        elif row["slashed"]:
            expected = f"slashing_{end}"
        else:
            expected = f"{'active' if row['exit_epoch'] is None else 'exiting'}_{end}"
        assert expected == row["status"]


def test_every_status_occurs(simulated):
    """Every status has a validator."""
    assert {
        "active_online", "active_offline", "exiting_online", "exiting_offline",
        "slashing_online", "slashing_offline", "exited", "slashed", "pending", "deposited",
    } == set(simulated.validators["status"])  # fmt: skip
    assert {"0x00", "0x01", "0x02"} == set(simulated.validator_epochs["kind"])


def test_withdrawn_validators_have_no_balance(simulated):
    """Withdrawn validators have no balance; exactly the validators of slashings are slashed."""
    withdrawn = simulated.validator_epochs.filter(
        (pl.col("withdrawable") < simulated.latest - 2) & (pl.col("kind") != "0x00")
    )
    rows = simulated.validators.join(withdrawn.select("validator_index"), "validator_index")

    assert rows.height
    assert {(0, 0)} == set(rows.select("balance_gwei", "effective_balance_gwei").rows())
    since = simulated.validators.filter("slashed", pl.col("exit_epoch") > simulated.first)
    assert sorted(since[KEY[0]]) == sorted(simulated.slashing_events[KEY[0]])


def test_balances_are_those_of_the_latest_epoch(simulated):
    """Balances of validators are those of the latest epoch's first slot."""
    latest = simulated.balance_history.filter(pl.col("epoch") == simulated.latest)
    columns = ["validator_index", "balance_gwei", "effective_balance_gwei"]

    assert simulated.validators.select(columns).equals(latest.select(columns))


def test_the_first_eighth_has_income_in_every_epoch(simulated):
    """The first eighth has income in every finalized epoch."""
    count = simulated.meta["validators"] // 8
    rows = simulated.income_history.filter(pl.col("validator_index") < count)

    assert count * (simulated.finalized - simulated.first + 1) == rows.height


def test_rewarded_voters_attested_in_the_finalized_epoch_or_later(simulated):
    """Validators with a vote reward in the finalized epoch attested in it or later."""
    voted = simulated.rows.filter(
        (pl.col("epoch") == simulated.finalized) & (pl.col("attestation_source_reward_gwei") > 0)
    )
    rows = voted.join(simulated.validators, "validator_index")

    assert_empty(rows.filter(pl.col("last_attestation_slot") < simulated.finalized * 32))
    assert rows["last_attestation_slot"].max() <= simulated.meta["latest_slot"]
