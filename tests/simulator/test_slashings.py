"""Test simulated slashings: evidence and penalties."""

from dataclasses import replace

import polars as pl

from beaconframes.simulator import simulate, simulation
from beaconframes.simulator.block_operations import BlockOperations
from beaconframes.simulator.preset import choose_preset, create_chain
from beaconframes.simulator.registry import create_registry

from ..support.simulated_chain import (
    ETH,
    KEY,
    SimulatedChain,
    assert_empty,
    assert_same_rows,
    select_income_keys,
)


def test_a_slashed_validator_has_income_until_it_is_withdrawable(tmp_path, monkeypatch):
    """With 24 epochs instead of 1,024 from a slashing on, a small chain has all of it."""

    def choose_short_preset(chain, stake):
        preset = choose_preset(chain, stake)
        return replace(
            preset, epochs_per_slashings_vector=24, min_validator_withdrawability_delay=8
        )

    monkeypatch.setattr(simulation, "choose_preset", choose_short_preset)
    simulated = SimulatedChain(simulate(tmp_path / "x", validators=64, epochs=60))
    (first, *_) = simulated.slashing_events.sort("slot").rows(named=True)
    own = simulated.income_history.filter(validator_index=first["validator_index"])

    assert first["slot"] // 32 + 24 - 2 == own["epoch"].max()
    assert simulated.income_history.select(KEY).equals(select_income_keys(simulated))
    test_the_second_penalty_is_proportional_to_the_slashed_stake(simulated)


def test_the_slashings_vector_has_1024_epochs():
    """In epoch 1034 that of epoch 10 is forgotten, and that of epoch 11 is not."""
    registry, plan = create_registry(1, 64, 0, 60, 225)
    operations = BlockOperations(1, choose_preset(create_chain(3), 64 * 32 * ETH), registry, plan)
    operations._slashed = [(10, 32 * ETH), (11, 16 * ETH)]

    assert [48 * ETH, 16 * ETH] == [operations.sum_recent_slashings(n) for n in (1033, 1034)]


def test_the_first_penalty_is_a_4096th_of_the_effective_balance(simulated):
    """A slashing costs a 4096th of the effective balance, and pays the including proposer."""
    rows = simulated.slashing_events.with_columns(epoch=pl.col("slot") // 32).filter(
        pl.col("epoch") <= simulated.finalized
    )
    blocks = simulated.produced.select("slot", "proposer_index")
    rows = rows.join(simulated.states.drop("slashed"), KEY).join(blocks, "slot")
    share = pl.col("effective_balance_gwei") // 4096
    expected = rows.group_by("epoch", validator_index="proposer_index").agg(
        including=(share * 8 // 64).sum(), reporting=(share - share * 8 // 64).sum()
    )
    income = simulated.income_history.join(expected, KEY, how="left")

    assert rows.height > 1
    for column, expected in (
        ("proposer_slashing_inclusion_reward_gwei", "including"),
        ("slashing_reward_gwei", "reporting"),
    ):
        assert_empty(income.filter(pl.col(column) != pl.col(expected).fill_null(0)))
    paid = rows.join(simulated.income_history, KEY)
    assert paid["slashing_penalty_gwei"].equals(
        paid["effective_balance_gwei"] // 4096, check_names=False
    )
    assert_empty(rows.filter(pl.col("validator_index") == pl.col("proposer_index")))


def test_the_second_penalty_is_proportional_to_the_slashed_stake(simulated):
    """Half-way to withdrawal, the penalty is proportional to the recently slashed balance."""
    first = simulated.slashing_events.select(KEY[0], epoch=pl.col("slot") // 32)
    later = simulated.income_history.filter(pl.col("slashing_penalty_gwei") > 0).join(
        first, KEY, how="anti"
    )
    slashed = simulated.slashing_events.with_columns(epoch=pl.col("slot") // 32)
    stakes = slashed.join(simulated.states, KEY).select("epoch", "effective_balance_gwei")
    expected = 0
    for epoch, validator in slashed.select("epoch", "validator_index").rows():
        half = epoch + simulated.vector // 2
        state = simulated.states.row(
            by_predicate=(pl.col("epoch") == half) & (pl.col("validator_index") == validator),
            named=True,
        ) if half <= simulated.finalized else None  # fmt: skip
        if state is None:
            continue
        expected += 1
        around = stakes.filter(
            (pl.col("epoch") <= half) & (pl.col("epoch") > half - simulated.vector)
        )["effective_balance_gwei"].sum()
        penalty = min(3 * around, state["total"]) // (state["total"] // ETH) * state["increments"]
        row = later.row(by_predicate=pl.col("validator_index") == validator, named=True)
        assert (half, penalty) == (row["epoch"], row["slashing_penalty_gwei"])
    assert expected == later.height
    assert expected or simulated.meta["epochs"] < simulated.vector // 2


def test_attester_slashings_have_two_votes_of_one_target(simulated):
    """Two different votes of one target; only the slashed validator signed both."""
    events = simulated.slashing_events.filter(pl.col("kind") == "attester")
    slashed = dict(events.select("slot", KEY[0]).rows())
    roots = set(simulated.canonical["block_root"])

    assert simulated.attester_slashings.height == events.height
    for row in simulated.attester_slashings.to_dicts():
        one, two = (set(row[f"attestation{n}_indices"]) for n in (1, 2))
        assert {slashed[row["block_slot"]]} == one & two
        assert len(one) > 1 < len(two)
        assert row["attestation1_target_epoch"] == row["attestation2_target_epoch"]
        heads = [row[f"attestation{n}_beacon_block_root"] for n in (1, 2)]
        assert heads[0] != heads[1]
        assert heads[0] in roots
        assert row["attestation1_slot"] < row["block_slot"]
        active = simulated.validators.filter(
            (pl.col("activation_epoch") <= row["attestation1_target_epoch"])
            & (pl.col("exit_epoch").fill_null(2**62) > row["attestation1_target_epoch"])
        )[KEY[0]]
        assert one | two <= set(active)


def test_proposer_slashings_have_two_headers_of_one_slot(simulated):
    """Two headers of one slot, which are those of the canonical and the orphaned block."""
    events = simulated.slashing_events.filter(pl.col("kind") == "proposer")
    blocks = simulated.blocks.filter(pl.col("block_root").is_not_null())

    assert_same_rows(
        simulated.proposer_slashings.select("block_slot", "proposer_index", "header1_slot"),
        events.select("slot", KEY[0], "offence_slot"),
    )
    for row in simulated.proposer_slashings.to_dicts():
        headers = [
            tuple(row[f"header{n}_{name}"] for name in ("slot", "state_root", "signature"))
            for n in (1, 2)
        ]
        double_blocks = blocks.filter(pl.col("slot") == row["header1_slot"])
        assert {row["proposer_index"]} == set(double_blocks["proposer_index"])
        assert sorted(headers) == sorted(
            double_blocks.select("slot", "state_root", "signature").rows()
        )
        assert row["header1_body_root"] != row["header2_body_root"]


def test_exactly_the_validators_in_evidence_are_slashed(simulated):
    """Exactly the validators in evidence were slashed during the chain."""
    named = simulated.proposer_slashings["proposer_index"].to_list()
    for row in simulated.attester_slashings.to_dicts():
        named += set(row["attestation1_indices"]) & set(row["attestation2_indices"])
    slashed = simulated.validators.filter(pl.col("slashed"), pl.col("exit_epoch") > simulated.first)

    assert sorted(slashed[KEY[0]]) == sorted(named)
