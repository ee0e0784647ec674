"""Test simulated beacon blocks: slots, proposers, roots, fees and counts."""

import polars as pl

from ..support.simulated_chain import KEY, assert_empty, assert_same_rows, count_rows


def test_every_slot_has_a_row(simulated):
    """Each slot has one row; a second one only for an orphaned block of a double proposal."""
    slots = simulated.blocks.group_by("slot").agg(pl.len(), pl.col("status").sort())
    first, last = simulated.first * 32, simulated.latest * 32 + 31

    assert [*range(first, last + 1)] == sorted(slots["slot"])
    double_proposals = slots.filter(pl.col("len") == 2)
    assert double_proposals.height == slots.filter(pl.col("len") > 1).height
    assert all(kinds == ["orphaned", "proposed"] for kinds in double_proposals["status"].to_list())
    offences = simulated.slashing_events.filter(pl.col("kind") == "proposer")["offence_slot"]
    assert sorted(offences) == sorted(double_proposals["slot"])


def test_slots_after_the_latest_are_scheduled(simulated):
    """All slots after the latest are scheduled, and no others."""
    later = pl.col("slot") > simulated.meta["latest_slot"]

    assert_empty(simulated.blocks.filter(later != (pl.col("status") == "scheduled")))
    assert 0 < simulated.blocks.filter(later).height < 32


def test_slots_without_a_block_have_only_a_proposer(simulated):
    """A missed or scheduled slot has a proposer and nothing else."""
    empty = simulated.blocks.filter(pl.col("status").is_in(["missed", "scheduled"]))
    filled = empty.select(
        pl.exclude("slot", "epoch", "time", "status", "proposer_index", "graffiti_text")
    )

    assert 0 == empty["proposer_index"].null_count()
    assert {""} == set(empty["graffiti_text"])
    for column in filled.iter_columns():
        values = set(column.unique().to_list())
        assert values in ({None}, {0}, {0.0}), column.name


def test_proposers_are_active(simulated):
    """Proposers are active; no canonical block has a slashed proposer."""
    proposers = simulated.blocks.join(
        simulated.validator_epochs, left_on="proposer_index", right_on="validator_index"
    )
    assert_empty(proposers.filter(~pl.col("epoch").is_between("activation", "exit", closed="left")))
    slashed = simulated.slashing_events.select(proposer_index="validator_index", since="slot")
    later = simulated.produced.join(slashed, "proposer_index").filter(
        pl.col("slot") >= pl.col("since")
    )
    assert_empty(later)


def test_parents_are_the_previous_canonical_blocks(simulated):
    """Each block's parent is the previous canonical block, in both layers."""
    blocks = simulated.blocks.filter(pl.col("block_root").is_not_null())
    canonical = blocks.filter(pl.col("status") == "proposed")

    assert blocks.height == blocks["block_root"].n_unique()
    assert canonical["parent_root"][1:].equals(canonical["block_root"][:-1], check_names=False)
    before = canonical.select(pl.col("slot") + 1, after="slot", root="block_root")
    orphans = blocks.filter(pl.col("status") == "orphaned").sort("slot")
    orphans = orphans.join_asof(before, on="slot").filter(pl.col("after").is_not_null())
    assert orphans.height > 3
    assert_empty(orphans.filter(pl.col("parent_root") != pl.col("root")))

    real = simulated.produced
    assert [1] == real["exec_block_number"].diff().drop_nulls().unique().to_list()
    assert real["exec_parent_hash"][1:].equals(real["exec_block_hash"][:-1], check_names=False)
    assert_empty(real.filter(pl.col("exec_time") != pl.col("time")))


def test_base_fee_follows_the_gas_used(simulated):
    """The base fee changes by an eighth of the distance to half-full blocks."""
    fee, limit, used = (
        simulated.produced[name].to_list()
        for name in ("exec_base_fee_per_gas_wei", "exec_gas_limit", "exec_gas_used")
    )
    for now, after, gas, most in zip(fee, fee[1:], used, limit, strict=False):
        half = most // 2
        change = int(now) * abs(gas - half) // half // 8
        assert after == (now + max(1, change) if gas > half else now - change)
        assert 0 < gas <= most


def test_hex_has_the_length_of_its_field(simulated):
    """Hex is lower case and has the length of its field."""
    bytes_of = {
        "block_root": 32, "parent_root": 32, "state_root": 32, "randao_reveal": 96,
        "signature": 96, "graffiti": 32, "sync_aggregate_bits": 64,
        "sync_aggregate_signature": 96, "exec_block_hash": 32, "exec_fee_recipient": 20,
        "exec_logs_bloom": 256, "exec_random": 32, "eth1_data_deposit_root": 32,
    }  # fmt: skip
    for name, size in bytes_of.items():
        assert_empty(
            simulated.blocks.filter(~pl.col(name).str.contains(rf"^0x[0-9a-f]{{{2 * size}}}$"))
        )
    keys = simulated.validators
    assert_empty(keys.filter(~pl.col("pubkey").str.contains(r"^0x[89ab][0-9a-f]{95}$")))
    assert keys.height == keys["pubkey"].n_unique()


def test_slot_0_has_a_block_without_a_proposer(simulated):
    """Slot 0 has a block without proposer and without content."""
    genesis = simulated.blocks.filter(pl.col("slot") == 0)

    assert (simulated.first == 0) == (genesis.height == 1)
    for block in genesis.to_dicts():
        assert ("proposed", None, None, 0) == (
            block["status"],
            block["proposer_index"],
            block["exec_block_number"],
            block["withdrawals_count"],
        )


def test_proposals_missed_are_slots_without_a_canonical_block(simulated):
    """The count is that of the validator's slots in the epoch without a canonical block."""
    good = simulated.blocks.filter(pl.col("status") == "proposed").select("slot")
    missed = (
        simulated.blocks.filter(pl.col("status") != "scheduled")
        .join(good, "slot", how="anti")
        .group_by("epoch", validator_index="proposer_index")
        .agg(missed=pl.len())
    )
    rows = simulated.income_history.join(missed, KEY, how="left")

    assert_empty(rows.filter(pl.col("proposals_missed") != pl.col("missed").fill_null(0)))
    assert rows["proposals_missed"].sum() > 10


def test_only_proposers_have_fees(simulated):
    """Only proposers of a block have fees in its epoch."""
    blocks = simulated.produced.filter(pl.col("epoch") <= simulated.finalized)
    expected = blocks.select("epoch", validator_index="proposer_index").unique()
    paid = simulated.income_history.filter(pl.col("tx_fee_reward_wei") > 0).select(KEY)

    assert paid.sort(KEY).equals(expected.select(KEY).sort(KEY))


def test_blocks_count_their_events(simulated):
    """Deposits, withdrawals, exits and slashings agree with the counts of the blocks."""
    real = pl.col("status") == "proposed"
    for table, column, some in (
        ("deposit_events", "deposits_count", True),
        ("withdrawal_events", "withdrawals_count", True),
        ("exit_events", "voluntary_exits_count", True),
        ("slashing_events", "attester_slashings_count", pl.col("kind") == "attester"),
        ("slashing_events", "proposer_slashings_count", pl.col("kind") == "proposer"),
    ):
        expected = getattr(simulated, table).filter(some).group_by("slot").agg(pl.len())
        blocks = simulated.blocks.filter(real & (pl.col(column) > 0)).select("slot", column)
        expected = expected.sort("slot").with_columns(pl.col("len").cast(pl.Int64))
        assert blocks.rows() == expected.rows()
        assert expected.height


def test_blocks_count_their_items(simulated):
    """The number of items of each kind is that of the canonical block."""
    since = (simulated.latest - 99) * 32
    for table, column, first in (
        ("slot_attestations", "attestations_count", since),
        ("slot_deposits", "deposits_count", 0),
        ("slot_withdrawals", "withdrawals_count", 0),
        ("voluntary_exits", "voluntary_exits_count", 0),
        ("attester_slashings", "attester_slashings_count", 0),
        ("proposer_slashings", "proposer_slashings_count", 0),
    ):
        blocks = simulated.canonical.filter(pl.col("slot") >= first, pl.col(column) > 0)
        assert_same_rows(
            blocks.select("slot", column), count_rows(getattr(simulated, table), "block_slot")
        )


def test_items_name_the_canonical_block_of_their_slot(simulated):
    """Items name the root of the canonical block of their slot, and are numbered from 0."""
    roots = simulated.canonical.select(block_slot="slot", block_root="block_root")
    for table in (
        "slot_attestations", "slot_deposits", "voluntary_exits",
        "attester_slashings", "proposer_slashings",
    ):  # fmt: skip
        rows = getattr(simulated, table)
        assert_empty(rows.join(roots, ["block_slot", "block_root"], how="anti"))
        place = pl.int_range(pl.len()).over("block_slot")
        assert_empty(rows.filter(pl.col("block_index") != place))
