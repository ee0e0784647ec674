"""Consistency of the simulated chain: one test per relation, for three seeds and two sizes.

The formulas are repeated here from the consensus specification and the published definitions, so
that the tests do not repeat a mistake of the simulator.
"""

import json
import math
import re
from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from beaconframes.calendar import Chain
from beaconframes.dataset import Dataset
from beaconframes.errors import DatasetError, UsageError
from beaconframes.simulator import simulate, simulation
from beaconframes.v1 import ENDPOINTS

from ..support.first_blocks import (
    compute_balances_before,
    compute_first_blocks,
    sum_first_withdrawals,
)

ETH = 10**9
SIZES = ({"validators": 300, "epochs": 300}, {"validators": 700, "epochs": 520, "history_days": 40})
REWARDS = [
    "attestation_head_reward_gwei",
    "attestation_source_reward_gwei",
    "attestation_target_reward_gwei",
    "proposer_attestation_inclusion_reward_gwei",
    "proposer_slashing_inclusion_reward_gwei",
    "proposer_sync_inclusion_reward_gwei",
    "sync_committee_reward_gwei",
    "slashing_reward_gwei",
]
PENALTIES = [
    "attestation_source_penalty_gwei",
    "attestation_target_penalty_gwei",
    "finality_delay_penalty_gwei",
    "sync_committee_penalty_gwei",
    "slashing_penalty_gwei",
]
KEY = ["validator_index", "epoch"]
WRITTEN_BY_EPOCH = ("income_history", "balance_history")
"""The tables whose rows the engine writes epoch by epoch; all others are in key order."""


class World:
    """A simulated chain with all its tables in memory."""

    def __init__(self, dataset):
        self.dataset, self.meta = dataset, dataset.meta
        for table in dataset.tables():
            setattr(self, table, dataset.scan(table).collect())
        self.__dict__.update({k: self.meta[f"{k}_epoch"] for k in ("first", "latest", "finalized")})
        self.factor = self.meta["preset"]["base_reward_factor"]
        self.vector = self.meta["preset"]["epochs_per_slashings_vector"]
        far = pl.lit(2**62)
        validator_epochs = self.validators.select(
            "validator_index",
            "slashed",
            kind=pl.col("withdrawal_credentials").str.slice(0, 4),
            activation=pl.col("activation_epoch").fill_null(far),
            exit=pl.col("exit_epoch").fill_null(far),
            withdrawable=pl.col("withdrawable_epoch").fill_null(far),
        )
        slashed = self.slashing_events.select("validator_index", since=pl.col("slot") // 32)
        switched = self.switch_events.select("validator_index", switch=pl.col("slot") // 32)
        self.validator_epochs = validator_epochs.join(slashed, "validator_index", how="left").join(
            switched, "validator_index", how="left"
        )
        active = (pl.col("activation") <= pl.col("epoch")) & (pl.col("epoch") < pl.col("exit"))
        # One row per validator and epoch, with the rewards of the specification.
        self.states = (
            self.balance_history.drop("time")
            .join(self.validator_epochs, "validator_index", maintain_order="left")
            .with_columns(
                # A validator that switches has its new maximum at the end of the epoch.
                max_effective=pl.when(
                    (pl.col("kind") == "0x02") & (pl.col("epoch") > pl.col("switch").fill_null(-1))
                )
                .then(2048 * ETH)
                .otherwise(32 * ETH)
            )
            .with_columns(active=active, increments=pl.col("effective_balance_gwei") // ETH)
            .with_columns(
                total=pl.col("effective_balance_gwei").filter("active").sum().over("epoch")
            )
        )
        roots = {total: math.isqrt(total) for total in self.states["total"].unique()}
        self.states = self.states.with_columns(
            per_increment=ETH * self.factor // pl.col("total").replace_strict(roots)
        ).with_columns(base=pl.col("increments") * pl.col("per_increment"))
        self.rows = self.states.join(self.income_history, KEY)
        self.canonical = self.blocks.filter(
            (pl.col("status") == "proposed") & pl.col("proposer_index").is_not_null()
        )
        net = pl.sum_horizontal(REWARDS) - pl.sum_horizontal(PENALTIES)
        self.before = compute_balances_before(
            self, self.income_history.select(*KEY, net.alias("gwei"))
        )


WORLDS = {
    f"seed{seed}-of-{size['validators']}": (seed, size) for size in SIZES for seed in (1, 2, 3)
}
USUAL, MORE = {"seed1-of-300"}, {"seed3-of-700"}
MARKS = {
    name: [] if name in USUAL else [pytest.mark.more if name in MORE else pytest.mark.long]
    for name in WORLDS
}


@pytest.fixture(
    scope="module",
    params=[pytest.param(world, id=name, marks=MARKS[name]) for name, world in WORLDS.items()],
)
def world(request, tmp_path_factory):
    seed, size = request.param
    path = tmp_path_factory.mktemp("chain") / "data"
    return World(simulate(path, seed=seed, **size))


def assert_empty(frame):
    """Assert that no row breaks a rule; a failing test shows the rows that do."""
    assert [] == frame.head(3).to_dicts()


def served_tables(world):
    """The tables of endpoints that the dataset has; the nine tables of the engine at least."""
    tables = {endpoint.table.table_name: endpoint.table for endpoint in ENDPOINTS}
    there = [table for name, table in tables.items() if hasattr(world, name)]
    assert len(there) >= 9
    return there


class TestTables:
    def test_columns_are_those_of_the_loaders(self, world):
        """Each table of an endpoint exists, with the columns that its loader returns."""
        for table in served_tables(world):
            assert table.schema() == getattr(world, table.table_name).schema

    def test_keys_are_unique_and_sorted(self, world):
        """No key occurs twice; tables are in key order, those of every epoch by epoch first."""
        for table in served_tables(world):
            key, name = table.key(), table.table_name
            rows = getattr(world, name)
            order = ["epoch", "validator_index"] if name in WRITTEN_BY_EPOCH else key
            assert rows.height == rows.select(key).unique().height
            assert rows.select(order).equals(rows.select(order).sort(order, nulls_last=True))

    def test_times(self, world):
        """Times are those of the chain's clock: 12 seconds per slot, 32 slots per epoch."""
        genesis = datetime.fromisoformat(world.meta["chain"]["genesis"])
        for table, unit, seconds in (
            ("income_history", "epoch", 384),
            ("balance_history", "epoch", 384),
            ("epochs", "epoch", 384),
            ("blocks", "slot", 12),
            ("graffiti_wall", "slot", 12),
            ("yield_index", "day", 86_400),
        ):
            expected = genesis + pl.duration(seconds=pl.col(unit) * seconds)
            assert_empty(getattr(world, table).filter(pl.col("time") != expected))

    def test_metadata(self, world):
        """The metadata state that the dataset is simulated, its seed and its head."""
        meta = world.meta
        epochs = world.meta["epochs"]
        first = 225 * meta["history_days"]

        assert (True, "simulated") == (meta["simulated"], meta["service"])
        assert (first, first + epochs - 1) == (meta["first_epoch"], meta["latest_epoch"])
        assert meta["latest_epoch"] - 2 == meta["finalized_epoch"]
        assert meta["latest_slot"] // 32 == meta["latest_epoch"]
        assert [] == world.dataset.verify()


class TestBalances:
    def test_move_by_income_deposits_and_withdrawals(self, world):
        """M3: a balance has all that was paid before, and the block of the epoch's first slot."""
        balances = world.balance_history.filter(
            pl.col("epoch").is_between(world.first, world.finalized)
        )
        rows = (
            balances.join(world.before, KEY, how="left")
            .join(compute_first_blocks(world), KEY, how="left")
            .join(sum_first_withdrawals(world), KEY, how="left")
            .with_columns(pl.col("low", "high", "paid").fill_null(0))
        )
        in_block = pl.col("balance_gwei") - pl.col("before") + pl.col("paid")

        assert rows.height > 80_000
        assert 0 == rows["before"].null_count()
        assert_empty(rows.filter(~in_block.is_between("low", "high")))
        assert rows.filter(pl.col("low") != pl.col("high")).height < len(world.epochs)
        assert rows.filter(in_block != 0).height > 1000
        assert rows.filter(pl.col("paid") > 0).height > 1000

    def test_rows_of_balances(self, world):
        """A validator has a balance in every epoch from its deposit to the latest epoch."""
        seen = world.balance_history.group_by("validator_index").agg(
            first=pl.col("epoch").min(), last=pl.col("epoch").max(), count=pl.len()
        )
        assert_empty(
            seen.filter(
                (pl.col("last") != world.latest)
                | (pl.col("count") != pl.col("last") - pl.col("first") + 1)
            )
        )
        assert world.meta["validators"] == seen.height
        new_validators = seen.filter(pl.col("first") > world.first)
        deposited = world.deposit_events.group_by("validator_index").agg(pl.col("slot").min() // 32)
        expected = new_validators.select("validator_index", slot=pl.col("first") - 1)
        assert 0 == expected.join(deposited, ["validator_index", "slot"], how="anti").height

    def test_rows_of_income(self, world):
        """Income exists for active validators, and for slashed ones until they are withdrawable."""
        slashed = (pl.col("since") <= pl.col("epoch")) & (
            pl.col("epoch") + 1 < pl.col("withdrawable")
        )
        expected = world.states.filter(
            (pl.col("active") | slashed.fill_null(value=False))
            & (pl.col("epoch") <= world.finalized)
        )
        keys = world.income_history.select(KEY)

        assert keys.equals(expected.select(KEY).sort("epoch", "validator_index"))

    def test_effective_balance_has_hysteresis(self, world):
        """It changes only if the balance is a quarter below or 1.25 above it.

        It is updated before the block of the epoch's first slot, whose withdrawals come later.
        """
        before = world.states.select(KEY[0], pl.col("epoch") + 1, e="effective_balance_gwei")
        rows = world.states.join(before, KEY).join(world.before, KEY, how="left")
        rows = rows.with_columns(balance_gwei=pl.coalesce("before", "balance_gwei"))
        balance, effective = pl.col("balance_gwei"), pl.col("e")
        moves = (balance + ETH // 4 < effective) | (effective + 5 * ETH // 4 < balance)
        floor = pl.min_horizontal(balance - balance % ETH, "max_effective")
        rule = pl.when(moves).then(floor).otherwise(effective)

        assert_empty(rows.filter(pl.col("effective_balance_gwei") != rule))
        assert rows.filter(moves).height > 3
        assert rows.filter(
            ~moves & (balance - effective > ETH) & (balance < pl.col("max_effective"))
        ).height

    def test_amounts_are_magnitudes(self, world):
        """No amount is negative, and none is a float."""
        for table in ("income_history", "balance_history", "withdrawal_events", "deposit_events"):
            rows = getattr(world, table)
            amounts = rows.select(pl.col(r"^.*_(gwei|wei)$"))
            assert not any(dtype.is_float() for dtype in amounts.dtypes)
            assert all(low >= 0 for low in amounts.min().row(0))


class TestAttestations:
    @pytest.mark.parametrize(("flag", "weight"), [("source", 14), ("target", 26), ("head", 14)])
    def test_rewards_and_penalties(self, world, flag, weight):
        """A flag earns base x weight x participation / 64, or costs base x weight / 64."""
        reward = pl.col(f"attestation_{flag}_reward_gwei")
        timely = reward > 0
        rows = world.rows.with_columns(
            participating=pl.col("increments").filter(timely).sum().over("epoch")
        )
        earned = pl.col("base") * weight * pl.col("participating") // (pl.col("total") // ETH * 64)
        assert_empty(rows.filter(timely & (reward != earned)))
        assert_empty(
            rows.filter(timely & (pl.col("slashed") & (pl.col("since") <= pl.col("epoch"))))
        )
        if flag != "head":
            penalty = pl.col(f"attestation_{flag}_penalty_gwei")
            expected = pl.when(timely).then(0).otherwise(pl.col("base") * weight // 64)
            assert_empty(rows.filter(penalty != expected))
        is_slashed = (pl.col("since") <= pl.col("epoch")).fill_null(value=False)
        name = f"attestation_{flag}_missed_gwei"
        missed = world.missed_reward_events.filter(pl.col(name) > 0)
        expected = rows.filter("active", ~timely, ~is_slashed).select(*KEY, earned.alias(name))
        assert expected.sort(KEY).equals(missed.select(*KEY, name).sort(KEY))
        assert expected.height > 100

    def test_flags_imply_each_other(self, world):
        """A timely head vote has the correct target; there is no inactivity leak."""
        head, target = (
            pl.col(f"attestation_{flag}_reward_gwei") > 0 for flag in ("head", "target")
        )
        assert_empty(world.rows.filter(head & ~target))
        assert 0 == world.rows["finality_delay_penalty_gwei"].sum()

    def test_participation(self, world):
        """Eligible is the stake of active validators, voted that of timely target voters."""
        voted = (
            world.rows.filter(pl.col("attestation_target_reward_gwei") > 0)
            .group_by("epoch")
            .agg(voted=pl.col("effective_balance_gwei").sum())
        )
        eligible = world.states.select("epoch", "total").unique()
        rows = world.epochs.join(eligible, "epoch").join(voted, "epoch")

        assert world.meta["epochs"] - 2 == rows.height
        assert_empty(rows.filter(pl.col("eligible_ether_gwei") != pl.col("total")))
        assert_empty(rows.filter(pl.col("voted_ether_gwei") != pl.col("voted")))
        for rate, some, whole in rows.select("global_participation_rate", "voted", "total").rows():
            assert some / whole == rate
            assert rate > 2 / 3

    def test_inclusion_pays_the_proposer(self, world):
        """Proposers of canonical blocks earn an eighth of the rewards of included votes."""
        reward = pl.col("proposer_attestation_inclusion_reward_gwei")
        blocks = world.canonical.select("epoch", validator_index="proposer_index").unique()
        assert_empty(world.rows.filter(reward > 0).join(blocks, KEY, how="anti"))
        weights = sum(
            (pl.col(f"attestation_{flag}_reward_gwei") > 0) * weight
            for flag, weight in (("source", 14), ("target", 26), ("head", 14))
        )
        paid, set_ = world.rows.select(
            reward.sum(), (pl.col("base") * weights).sum().alias("flags")
        ).row(0)
        # (64 - 8) x 64 / 8 = 448. Rounded down per attestation; the votes of the border epochs and
        # of validators slashed meanwhile make a small difference.
        assert 0.99 < paid / (set_ / 448) < 1.003


class TestSyncCommittees:
    def test_seats(self, world):
        """Each period of the epochs, and the next period, has 512 seats."""
        committees = world.sync_committees
        periods = range(world.first // 256, world.latest // 256 + 2)

        assert [p for p in periods for _ in range(512)] == committees["period"].to_list()
        assert [*range(512)] * len(periods) == committees["seat"].to_list()
        assert_empty(
            committees.filter(
                (pl.col("start_epoch") != pl.col("period") * 256)
                | (pl.col("end_epoch") != pl.col("period") * 256 + 255)
            )
        )
        assert committees.group_by("period").agg(pl.col("validator_index").n_unique()).height
        assert committees.select("period", "validator_index").is_duplicated().any()

    def test_members_are_paid_in_every_epoch(self, world):
        """Members of a committee have income throughout its period."""
        span = pl.int_ranges(
            pl.max_horizontal("start_epoch", world.first),
            pl.min_horizontal("end_epoch", world.finalized) + 1,
        )
        members = world.sync_committees.unique(["period", "validator_index"])
        duties = members.select("validator_index", epoch=span).explode("epoch", empty_as_null=False)

        assert_empty(duties.join(world.income_history, KEY, how="anti"))

    def test_bits_agree_with_income(self, world):
        """A seat earns for each signature in a block, and loses as much for each missing one."""
        blocks = world.canonical.filter(pl.col("epoch") <= world.finalized)
        text = "".join(blocks["sync_aggregate_bits"].str.slice(2))
        # Seat i is bit i, the lowest bit of each byte first.
        data = np.frombuffer(bytes.fromhex(text), np.uint8).reshape(-1, 64)
        signed = np.unpackbits(data, axis=1, bitorder="little").astype(np.int64)
        popcount = signed.sum(axis=1)
        assert (popcount / 512).tolist() == blocks["sync_aggregate_participation"].to_list()

        shape = (world.finalized - world.first + 1, world.meta["validators"])
        earned, penalties, shared = np.zeros((3, *shape), np.int64)
        seats = world.sync_committees.partition_by("period", as_dict=True)
        epochs, proposers = blocks["epoch"].to_numpy(), blocks["proposer_index"].to_numpy()
        increments = pl.col("total") // ETH
        states = world.states.group_by("epoch").agg(
            (pl.col("per_increment") * increments).first() * 2 // 64 // 32 // 512
        )
        for epoch, share in states.filter(pl.col("epoch") <= world.finalized).rows():
            row, here = epoch - world.first, epochs == epoch
            members = seats[(epoch // 256,)]["validator_index"].to_numpy()
            got = signed[here].sum(axis=0)
            np.add.at(earned[row], members, got * share)
            np.add.at(penalties[row], members, (here.sum() - got) * share)
            np.add.at(shared[row], proposers[here], popcount[here] * (share * 8 // 56))
        rows = world.income_history
        where = rows["epoch"].to_numpy() - world.first, rows["validator_index"].to_numpy()
        for name, expected in (
            ("sync_committee_reward_gwei", earned),
            ("sync_committee_penalty_gwei", penalties),
            ("proposer_sync_inclusion_reward_gwei", shared),
        ):
            paid = np.zeros_like(expected)
            paid[where] = rows[name].to_numpy()
            assert np.array_equal(expected, paid)


class TestBlocks:
    def test_every_slot(self, world):
        """Each slot has one row; a second one only for an orphaned block of a double proposal."""
        slots = world.blocks.group_by("slot").agg(pl.len(), pl.col("status").sort())
        first, last = world.first * 32, world.latest * 32 + 31

        assert [*range(first, last + 1)] == sorted(slots["slot"])
        double_proposals = slots.filter(pl.col("len") == 2)
        assert double_proposals.height == slots.filter(pl.col("len") > 1).height
        assert all(
            kinds == ["orphaned", "proposed"] for kinds in double_proposals["status"].to_list()
        )
        offences = world.slashing_events.filter(pl.col("kind") == "proposer")["offence_slot"]
        assert sorted(offences) == sorted(double_proposals["slot"])

    def test_scheduled(self, world):
        """All slots after the latest are scheduled, and no others."""
        later = pl.col("slot") > world.meta["latest_slot"]

        assert_empty(world.blocks.filter(later != (pl.col("status") == "scheduled")))
        assert 0 < world.blocks.filter(later).height < 32

    def test_without_a_block(self, world):
        """A missed or scheduled slot has a proposer and nothing else."""
        empty = world.blocks.filter(pl.col("status").is_in(["missed", "scheduled"]))
        filled = empty.select(
            pl.exclude("slot", "epoch", "time", "status", "proposer_index", "graffiti_text")
        )

        assert 0 == empty["proposer_index"].null_count()
        assert {""} == set(empty["graffiti_text"])
        for column in filled.iter_columns():
            values = set(column.unique().to_list())
            assert values in ({None}, {0}, {0.0}), column.name

    def test_proposers_are_active(self, world):
        """Proposers are active; no canonical block has a slashed proposer."""
        proposers = world.blocks.join(
            world.validator_epochs, left_on="proposer_index", right_on="validator_index"
        )
        assert_empty(
            proposers.filter(~pl.col("epoch").is_between("activation", "exit", closed="left"))
        )
        slashed = world.slashing_events.select(proposer_index="validator_index", since="slot")
        later = world.canonical.join(slashed, "proposer_index").filter(
            pl.col("slot") >= pl.col("since")
        )
        assert_empty(later)

    def test_chain_of_roots(self, world):
        """Each block's parent is the previous canonical block, in both layers."""
        blocks = world.blocks.filter(pl.col("block_root").is_not_null())
        canonical = blocks.filter(pl.col("status") == "proposed")

        assert blocks.height == blocks["block_root"].n_unique()
        assert canonical["parent_root"][1:].equals(canonical["block_root"][:-1], check_names=False)
        before = canonical.select(pl.col("slot") + 1, after="slot", root="block_root")
        orphans = blocks.filter(pl.col("status") == "orphaned").sort("slot")
        orphans = orphans.join_asof(before, on="slot").filter(pl.col("after").is_not_null())
        assert orphans.height > 3
        assert_empty(orphans.filter(pl.col("parent_root") != pl.col("root")))

        real = world.canonical
        assert [1] == real["exec_block_number"].diff().drop_nulls().unique().to_list()
        assert real["exec_parent_hash"][1:].equals(real["exec_block_hash"][:-1], check_names=False)
        assert_empty(real.filter(pl.col("exec_time") != pl.col("time")))

    def test_base_fee(self, world):
        """The base fee changes by an eighth of the distance to half-full blocks."""
        fee, limit, used = (
            world.canonical[name].to_list()
            for name in ("exec_base_fee_per_gas_wei", "exec_gas_limit", "exec_gas_used")
        )
        for now, after, gas, most in zip(fee, fee[1:], used, limit, strict=False):
            half = most // 2
            change = int(now) * abs(gas - half) // half // 8
            assert after == (now + max(1, change) if gas > half else now - change)
            assert 0 < gas <= most

    def test_hex(self, world):
        """Hex is lower case and has the length of its field."""
        bytes_of = {
            "block_root": 32, "parent_root": 32, "state_root": 32, "randao_reveal": 96,
            "signature": 96, "graffiti": 32, "sync_aggregate_bits": 64,
            "sync_aggregate_signature": 96, "exec_block_hash": 32, "exec_fee_recipient": 20,
            "exec_logs_bloom": 256, "exec_random": 32, "eth1_data_deposit_root": 32,
        }  # fmt: skip
        for name, size in bytes_of.items():
            assert_empty(
                world.blocks.filter(~pl.col(name).str.contains(rf"^0x[0-9a-f]{{{2 * size}}}$"))
            )
        keys = world.validators
        assert_empty(keys.filter(~pl.col("pubkey").str.contains(r"^0x[89ab][0-9a-f]{95}$")))
        assert keys.height == keys["pubkey"].n_unique()

    def test_genesis(self, world):
        """Slot 0 has a block without proposer and without content."""
        genesis = world.blocks.filter(pl.col("slot") == 0)

        assert (world.first == 0) == (genesis.height == 1)
        for block in genesis.to_dicts():
            assert ("proposed", None, None, 0) == (
                block["status"],
                block["proposer_index"],
                block["exec_block_number"],
                block["withdrawals_count"],
            )

    def test_proposals_missed(self, world):
        """The count is that of the validator's slots in the epoch without a canonical block."""
        good = world.blocks.filter(pl.col("status") == "proposed").select("slot")
        missed = (
            world.blocks.filter(pl.col("status") != "scheduled")
            .join(good, "slot", how="anti")
            .group_by("epoch", validator_index="proposer_index")
            .agg(missed=pl.len())
        )
        rows = world.income_history.join(missed, KEY, how="left")

        assert_empty(rows.filter(pl.col("proposals_missed") != pl.col("missed").fill_null(0)))
        assert rows["proposals_missed"].sum() > 10

    def test_fees_go_to_proposers(self, world):
        """Only proposers of a block have fees in its epoch."""
        blocks = world.canonical.filter(pl.col("epoch") <= world.finalized)
        expected = blocks.select("epoch", validator_index="proposer_index").unique()
        paid = world.income_history.filter(pl.col("tx_fee_reward_wei") > 0).select(KEY)

        assert paid.sort(KEY).equals(expected.select(KEY).sort(KEY))


class TestEpochs:
    def test_counts(self, world):
        """An epoch has the counts of its canonical blocks; those of the running epoch are 0."""
        names = [
            "attestations_count", "attester_slashings_count", "proposer_slashings_count",
            "deposits_count", "withdrawals_count", "voluntary_exits_count",
        ]  # fmt: skip
        expected = (
            world.blocks.filter(pl.col("status") == "proposed")
            .group_by("epoch")
            .agg(pl.col(names).sum(), blocks_count=pl.len().cast(pl.Int64))
            .sort("epoch")
        )
        ended = world.epochs.filter(pl.col("epoch") < world.latest)
        running = world.epochs.filter(pl.col("epoch") == world.latest)

        assert ended.select(expected.columns).equals(expected.head(-1))
        assert {0} == set(running.select(*names, "blocks_count", "voted_ether_gwei").row(0))

    def test_blocks_by_status(self, world):
        """Proposed, missed, orphaned and scheduled are the rows of the epoch with that status."""
        for status in ("proposed", "missed", "orphaned", "scheduled"):
            rows = world.blocks.group_by("epoch").agg((pl.col("status") == status).sum())
            expected = rows.sort("epoch")["status"].to_list()
            assert expected == world.epochs[f"{status}_blocks"].to_list()

    def test_validators(self, world):
        """Count, total and mean balance are those of the active validators."""
        active = world.states.filter("active").group_by("epoch")
        expected = active.agg(
            count=pl.len().cast(pl.Int64), total=pl.col("balance_gwei").sum()
        ).sort("epoch")
        epochs = world.epochs

        assert expected["count"].equals(epochs["validators_count"])
        assert expected["total"].equals(epochs["total_validator_balance_gwei"])
        mean = expected["total"] // expected["count"]
        assert mean.equals(epochs["average_validator_balance_gwei"])

    def test_finality(self, world):
        """Epochs are finalized, and their rewards exported, up to the finalized epoch."""
        final = pl.col("epoch") <= world.finalized
        assert_empty(world.epochs.filter(pl.col("finalized") != final))
        assert_empty(world.epochs.filter(pl.col("rewards_exported") != final))
        assert world.finalized == world.income_history["epoch"].max()
        assert world.latest == world.balance_history["epoch"].max()


def compute_withdrawable(world):
    """Return the amount that each validator can withdraw in each epoch, before its first block."""
    balance, max_effective = pl.col("before"), pl.col("max_effective")
    full = pl.col("withdrawable") <= pl.col("epoch")
    above = (pl.col("effective_balance_gwei") == max_effective) & (balance > max_effective)
    amount = (
        pl.when((pl.col("kind") == "0x00") | (pl.col("epoch") <= pl.col("changed"))).then(0)
        .when(full).then(balance).when(above).then(balance - max_effective).otherwise(0)
    )  # fmt: skip
    changes = world.bls_change_events.select(KEY[0], changed=pl.col("slot") // 32)
    states = world.states.join(changes, KEY[0], how="left").join(world.before, KEY)
    rows = states.with_columns(pl.col("changed").fill_null(-1)).select(*KEY, expected_gwei=amount)
    return rows.filter(pl.col("expected_gwei") > 0)


class TestEvents:
    def test_blocks_have_their_counts(self, world):
        """Deposits, withdrawals, exits and slashings agree with the counts of the blocks."""
        real = pl.col("status") == "proposed"
        for table, column, some in (
            ("deposit_events", "deposits_count", True),
            ("withdrawal_events", "withdrawals_count", True),
            ("exit_events", "voluntary_exits_count", True),
            ("slashing_events", "attester_slashings_count", pl.col("kind") == "attester"),
            ("slashing_events", "proposer_slashings_count", pl.col("kind") == "proposer"),
        ):
            expected = getattr(world, table).filter(some).group_by("slot").agg(pl.len())
            blocks = world.blocks.filter(real & (pl.col(column) > 0)).select("slot", column)
            expected = expected.sort("slot").with_columns(pl.col("len").cast(pl.Int64))
            assert blocks.rows() == expected.rows()
            assert expected.height

    def test_withdrawal_amounts(self, world):
        """The whole balance when withdrawable; the excess at the maximum effective balance."""
        paid = world.withdrawal_events.with_columns(epoch=pl.col("slot") // 32)
        paid = paid.filter(pl.col("epoch") <= world.finalized + 1)
        assert paid.height == paid.select(KEY).unique().height
        swept = paid.join(world.manual_withdrawal_events, ["slot", KEY[0]], how="anti")
        rows = swept.join(compute_withdrawable(world), KEY, how="left")

        assert 0 == rows["expected_gwei"].null_count()
        assert_empty(rows.filter(pl.col("amount_gwei") != pl.col("expected_gwei")))

    def test_sweep_continues(self, world):
        """Blocks have the next sixteen withdrawals by index, from the first after the last."""
        paid = world.withdrawal_events
        paid_in = dict(paid.group_by("slot", maintain_order=True).agg("validator_index").rows())
        due_in = dict(
            compute_withdrawable(world).sort(KEY).group_by("epoch").agg("validator_index").rows()
        )
        known = dict(world.balance_history.group_by("epoch").len().rows())

        assert [*range(paid.height)] == paid["withdrawal_index"].to_list()
        for validator, slot in world.switch_events.select(KEY[0], "slot").rows():
            due_in[slot // 32] = [index for index in due_in[slot // 32] if index != validator]
        manual = dict(world.manual_withdrawal_events.group_by("slot").len().rows())
        start, waiting, now = 0, [], None
        known_until = pl.col("epoch") <= world.finalized + 1
        for slot, epoch in world.canonical.filter(known_until).select("slot", "epoch").rows():
            if epoch != now:
                waiting, now = sorted(due_in.get(epoch, [])), epoch
            cut = bisect_left(waiting, start)
            space = 16 - manual.get(slot, 0)
            turn = (waiting[cut:] + waiting[:cut])[:space]
            assert turn == paid_in.get(slot, [])[manual.get(slot, 0) :]
            waiting = sorted({*waiting} - {*turn}) if turn else waiting
            start = (turn[-1] + 1 if len(turn) == space else start + 16_384) % known[epoch]

    def test_requested_withdrawals(self, world):
        """E16: requests of compounding validators are paid 261 epochs later, and keep 32 ETH."""
        requests = world.withdrawal_request_events.rename({"slot": "request_slot"})
        paid = world.manual_withdrawal_events.join(world.withdrawal_events, ["slot", KEY[0]]).join(
            requests, [KEY[0], "request_slot"], suffix="_requested"
        )
        rows = paid.with_columns(epoch=pl.col("slot") // 32).join(world.before, KEY, how="left")
        delay = pl.col("epoch") - pl.col("request_slot") // 32
        kinds = dict(world.validator_epochs.select(KEY[0], "kind").rows())

        assert 0 < rows.height == world.manual_withdrawal_events.height <= requests.height
        assert_empty(rows.filter(delay < 261))
        asked = pl.min_horizontal("amount_gwei_requested", pl.col("before") - 32 * ETH)
        assert_empty(rows.filter(pl.col("amount_gwei") != asked))
        assert {"0x02"} == {kinds[index] for index in requests[KEY[0]]}
        rejected = world.rejected_request_events
        assert 2 == rejected.height
        assert "0x02" not in {kinds[index] for index in rejected[KEY[0]]}

    def test_switches_to_compounding(self, world):
        """E16: the balance above 32 ETH becomes a deposit, processed in the same epoch."""
        rows = world.switch_events.with_columns(epoch=pl.col("slot") // 32).join(
            world.validator_epochs.select(KEY[0], "kind"), KEY[0]
        )
        later = rows.select(KEY[0], switch="epoch").join(world.withdrawal_events, KEY[0])
        first = world.deposits.join(world.validators, "pubkey").join(rows, KEY[0], how="semi")

        assert rows.height >= 2
        assert {"0x02"} == set(rows["kind"])
        assert 0 < rows["amount_gwei"].max() < ETH
        assert_empty(rows.filter(pl.col("slot") % 32 == 0))
        # Their balances stay far below the new maximum.
        assert_empty(later.filter(pl.col("slot") // 32 > pl.col("switch")))
        assert {"0x01"} == set(first["withdrawal_credentials"].str.slice(0, 4))
        listed = world.switch_to_compounding_requests.select(
            pl.col("block_slot").alias("slot"), KEY[0]
        )
        assert rows.select("slot", KEY[0]).equals(listed)

    def test_total_withdrawals(self, world):
        """A validator's total is the sum of its withdrawals, plus those before the first epoch."""
        sums = world.withdrawal_events.group_by("validator_index").agg(pl.col("amount_gwei").sum())
        rows = world.validators.join(sums, "validator_index", how="left")
        before = rows["total_withdrawals_gwei"] - rows["amount_gwei"].fill_null(0)

        assert before.min() >= 0
        assert (world.first == 0) == (before.max() == 0)

    def test_first_slashing_penalty(self, world):
        """A slashing costs a 4096th of the effective balance, and pays the including proposer."""
        rows = world.slashing_events.with_columns(epoch=pl.col("slot") // 32).filter(
            pl.col("epoch") <= world.finalized
        )
        blocks = world.canonical.select("slot", "proposer_index")
        rows = rows.join(world.states.drop("slashed"), KEY).join(blocks, "slot")
        share = pl.col("effective_balance_gwei") // 4096
        expected = rows.group_by("epoch", validator_index="proposer_index").agg(
            including=(share * 8 // 64).sum(), reporting=(share - share * 8 // 64).sum()
        )
        income = world.income_history.join(expected, KEY, how="left")

        assert rows.height > 1
        for column, expected in (
            ("proposer_slashing_inclusion_reward_gwei", "including"),
            ("slashing_reward_gwei", "reporting"),
        ):
            assert_empty(income.filter(pl.col(column) != pl.col(expected).fill_null(0)))
        paid = rows.join(world.income_history, KEY)
        assert paid["slashing_penalty_gwei"].equals(
            paid["effective_balance_gwei"] // 4096, check_names=False
        )
        assert_empty(rows.filter(pl.col("validator_index") == pl.col("proposer_index")))

    def test_second_slashing_penalty(self, world):
        """Half-way to withdrawal, the penalty is proportional to the recently slashed balance."""
        first = world.slashing_events.select(KEY[0], epoch=pl.col("slot") // 32)
        later = world.income_history.filter(pl.col("slashing_penalty_gwei") > 0).join(
            first, KEY, how="anti"
        )
        slashed = world.slashing_events.with_columns(epoch=pl.col("slot") // 32)
        stakes = slashed.join(world.states, KEY).select("epoch", "effective_balance_gwei")
        expected = 0
        for epoch, validator in slashed.select("epoch", "validator_index").rows():
            half = epoch + world.vector // 2
            state = world.states.row(
                by_predicate=(pl.col("epoch") == half) & (pl.col("validator_index") == validator),
                named=True,
            ) if half <= world.finalized else None  # fmt: skip
            if state is None:
                continue
            expected += 1
            around = stakes.filter(
                (pl.col("epoch") <= half) & (pl.col("epoch") > half - world.vector)
            )["effective_balance_gwei"].sum()
            penalty = (
                min(3 * around, state["total"]) // (state["total"] // ETH) * state["increments"]
            )
            row = later.row(by_predicate=pl.col("validator_index") == validator, named=True)
            assert (half, penalty) == (row["epoch"], row["slashing_penalty_gwei"])
        assert expected == later.height
        assert expected or world.meta["epochs"] < world.vector // 2

    def test_deposits_take_effect(self, world):
        """The first balance of a new validator is its deposit."""
        first = world.balance_history.group_by("validator_index").agg(
            pl.col("epoch", "balance_gwei").first()
        ).filter(pl.col("epoch") > world.first)  # fmt: skip
        given = world.deposit_events.group_by(
            "validator_index", epoch=pl.col("slot") // 32 + 1
        ).agg(pl.col("amount_gwei").sum())
        rows = first.join(given, KEY)

        assert 4 <= rows.height == first.height
        assert_empty(rows.filter(pl.col("balance_gwei") != pl.col("amount_gwei")))


class TestValidators:
    def test_exits_and_slashings_set_epochs(self, world):
        """Five epochs to the exit, 256 more to withdrawal; slashed validators wait longer."""
        exits = pl.concat(
            [
                world.exit_events.select("validator_index", "slot", wait=256 + 5),
                world.slashing_events.select("validator_index", "slot", wait=world.vector),
            ]
        )
        rows = world.validators.join(exits, "validator_index")
        requested = pl.col("slot") // 32

        assert exits.height == rows.height
        assert_empty(rows.filter(pl.col("exit_epoch") != requested + 5))
        assert_empty(rows.filter(pl.col("withdrawable_epoch") != requested + pl.col("wait")))
        left = world.validators.filter(
            (pl.col("exit_epoch") > world.first) & ~pl.col("validator_index").is_in(
                exits["validator_index"].to_list()
            )
        )  # fmt: skip
        assert_empty(left)

    def test_activation_queue(self, world):
        """New validators are eligible, then active; four per epoch at most, in their order."""
        rows = world.validators.filter(pl.col("activation_eligibility_epoch") > world.first)
        seen = world.balance_history.group_by("validator_index").agg(
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

    def test_statuses(self, world):
        """The status follows from epochs, slashing and the last attestation."""
        newest = world.validators["last_attestation_slot"].max()
        for row in world.validators.to_dicts():
            offline = (row["last_attestation_slot"] or 0) < newest - 64
            end = "offline" if offline else "online"
            if (row["exit_epoch"] or math.inf) <= world.latest:
                expected = "slashed" if row["slashed"] else "exited"
            elif row["activation_eligibility_epoch"] is None:
                expected = "deposited"
            elif (row["activation_epoch"] or 2**62) > world.latest and row["activation_epoch"] != 0:
                expected = "pending"
            elif row["slashed"]:
                expected = f"slashing_{end}"
            else:
                expected = f"{'active' if row['exit_epoch'] is None else 'exiting'}_{end}"
            assert expected == row["status"]

    def test_every_status_occurs(self, world):
        """Every status has a validator."""
        assert {
            "active_online", "active_offline", "exiting_online", "exiting_offline",
            "slashing_online", "slashing_offline", "exited", "slashed", "pending", "deposited",
        } == set(world.validators["status"])  # fmt: skip
        assert {"0x00", "0x01", "0x02"} == set(world.validator_epochs["kind"])

    def test_paid_out(self, world):
        """Withdrawn validators have no balance; exactly the validators of slashings are slashed."""
        withdrawn = world.validator_epochs.filter(
            (pl.col("withdrawable") < world.latest - 2) & (pl.col("kind") != "0x00")
        )
        rows = world.validators.join(withdrawn.select("validator_index"), "validator_index")

        assert rows.height
        assert {(0, 0)} == set(rows.select("balance_gwei", "effective_balance_gwei").rows())
        since = world.validators.filter("slashed", pl.col("exit_epoch") > world.first)
        assert sorted(since[KEY[0]]) == sorted(world.slashing_events[KEY[0]])

    def test_state_at_the_head(self, world):
        """Balances of validators are those of the latest epoch's first slot."""
        latest = world.balance_history.filter(pl.col("epoch") == world.latest)
        columns = ["validator_index", "balance_gwei", "effective_balance_gwei"]

        assert world.validators.select(columns).equals(latest.select(columns))

    def test_first_validators_stay(self, world):
        """The first eighth has income in every finalized epoch."""
        count = world.meta["validators"] // 8
        rows = world.income_history.filter(pl.col("validator_index") < count)

        assert count * (world.finalized - world.first + 1) == rows.height

    def test_last_attestation(self, world):
        """Validators with a vote reward in the finalized epoch attested in it or later."""
        voted = world.rows.filter(
            (pl.col("epoch") == world.finalized) & (pl.col("attestation_source_reward_gwei") > 0)
        )
        rows = voted.join(world.validators, "validator_index")

        assert_empty(rows.filter(pl.col("last_attestation_slot") < world.finalized * 32))
        assert rows["last_attestation_slot"].max() <= world.meta["latest_slot"]


PAINT = (
    re.compile(rb"graffitiwall:([0-9]{1,3}):([0-9]{1,3}):#([0-9a-fA-F]{6})"),
    re.compile(rb"gw:([0-9]{3})([0-9]{3})([0-9a-fA-F]{6})"),
)


def decode_pixels(blocks):
    """Decode the graffiti of blocks, one pixel per slot."""
    rows = []
    for slot, proposer, graffiti in blocks.select("slot", "proposer_index", "graffiti").rows():
        data = bytes.fromhex(graffiti[2:]) if graffiti else b""
        match = next((m for pattern in PAINT if (m := pattern.search(data))), None)
        if match:
            x, y, color = match.groups()
            rows.append((slot, int(x), int(y), color.decode(), proposer))
    return rows


class TestWall:
    def test_is_what_the_blocks_paint(self, world):
        """Decoding the blocks' graffiti gives the wall; orphaned blocks change nothing."""
        rows = world.graffiti_wall.drop("time").rows()

        assert decode_pixels(world.blocks.filter(pl.col("status") == "proposed")) == rows
        assert decode_pixels(world.blocks) == rows

    def test_graffiti_text(self, world):
        """The text is the bytes without their padding."""
        for text, data in world.canonical.select("graffiti_text", "graffiti").unique().rows():
            assert text == bytes.fromhex(data[2:]).rstrip(b"\0").decode()

    def test_graffiti_formats(self, world):
        """Both formats of pixels occur, in both cases; other texts and near misses as well."""
        texts = " ".join(world.canonical["graffiti_text"])

        assert re.search(r"graffitiwall:\d+:\d+:#[0-9]*[a-f]", texts)
        assert re.search(r"\(gw:\d{6}[0-9A-F]{6}\)", texts)
        assert "graffitiwall:1200:40:#ff0000" in texts
        assert world.canonical["graffiti_text"].n_unique() > 10
        # E16: few validators write colors in upper case.
        has_upper = world.graffiti_wall["color"].str.contains("[A-F]")
        assert 0.005 < has_upper.mean() < 0.1

    def test_picture_is_finished(self, world):
        """The picture is complete and in the middle, and parts were painted over."""
        wall = world.graffiti_wall
        last = wall.unique(["x", "y"], keep="last", maintain_order=True)
        (left, right), (top, bottom) = ((wall[axis].min(), wall[axis].max()) for axis in ("x", "y"))
        area = (right - left + 1) * (bottom - top + 1)

        assert 998 <= left + right <= 1000
        assert 998 <= top + bottom <= 1000
        assert area == last.height < wall.height
        assert area >= 3_500
        # A lighthouse has red and white; the vandalized pixels were painted over.
        colors = last["color"].str.to_lowercase().value_counts().rows()
        counts = dict(colors)
        assert counts["c8372d"] > 20 < counts["f4efe4"]
        assert "ff00aa" in set(wall["color"].str.to_lowercase())
        assert "ff00aa" not in counts


class TestYieldIndex:
    def test_by_its_definition(self, world):
        """A detailed day is the sum over the validators that were active throughout."""
        rows = world.yield_index.to_dicts()
        days = range(world.first // 225, (world.finalized) // 225)

        assert [*range(len(rows))] == [row["day"] for row in rows]
        assert len(rows) == days.stop
        for day in days:
            begin, end = 225 * day, 225 * (day + 1)
            whole = world.validator_epochs.filter(
                (pl.col("activation") <= begin) & (pl.col("exit") >= end)
            ).select("validator_index")

            def total(table, column, whole=whole, begin=begin, end=end):
                rows = getattr(world, table)
                # The first block of a day is in its start balance: it counts for the day before.
                epoch = pl.col("epoch") if "epoch" in rows.columns else (pl.col("slot") - 1) // 32
                rows = rows.filter(epoch.is_between(begin, end, closed="left"))
                return int(rows.join(whole, "validator_index")[column].sum())

            def state(epoch, column, whole=whole):
                rows = world.balance_history.filter(pl.col("epoch") == epoch)
                return int(rows.join(whole, "validator_index")[column].sum())

            start, finish = (state(epoch, "balance_gwei") for epoch in (begin, end))
            deposits = total("deposit_events", "amount_gwei")
            consensus = finish - start - deposits + total("withdrawal_events", "amount_gwei")
            fees = total("income_history", "tx_fee_reward_wei")
            row = rows[day]
            assert consensus * ETH == row["consensus_rewards_sum_wei"]
            assert fees == row["tx_fees_sum_wei"]
            assert deposits * ETH == row["deposits_sum_wei"]
            assert start * ETH == row["start_balances_sum_wei"]
            assert finish * ETH == row["end_balances_sum_wei"]
            effective = state(begin, "effective_balance_gwei")
            assert effective * ETH == row["effective_balances_sum_wei"]
            income = sum(total("income_history", name) for name in REWARDS)
            income -= sum(total("income_history", name) for name in PENALTIES)
            first = compute_first_blocks(world).join(whole, "validator_index")
            before, after = (
                first.filter(pl.col("epoch") == epoch).select("low", "high").sum().row(0)
                for epoch in (begin, end)
            )
            assert after[0] - before[1] <= consensus - income <= after[1] - before[0]

    def test_rates(self, world):
        """Rates are 365 times a day's rewards divided by the effective balances."""
        for row in world.yield_index.to_dicts():
            cl, el, stake = (
                int(row[f"{name}_sum_wei"])
                for name in ("consensus_rewards", "tx_fees", "effective_balances")
            )
            assert cl + el == row["total_rewards_wei"]
            assert float(Fraction(365 * (cl + el), stake)) == row["apr"]
            digits = Decimal("1e-16")
            assert float((365 * Decimal(cl) / Decimal(stake)).quantize(digits)) == row["cl_apr"]
            assert float((365 * Decimal(el) / Decimal(stake)).quantize(digits)) == row["el_apr"]
            assert 0.02 < row["cl_apr"] < 0.045
            assert 0.002 < row["el_apr"] < 0.02

    @pytest.mark.parametrize("window", [7, 31])
    def test_trailing_means(self, world, window):
        """Means cover the last days, the current one included, and fewer near genesis."""
        rows = world.yield_index.to_dicts()
        for day, row in enumerate(rows):
            part = rows[max(0, day - window + 1) : day + 1]
            for name in ("apr", "cl_apr", "el_apr"):
                mean = math.fsum(r[name] for r in part) / len(part)
                assert mean == row[f"{name}_avg_{window}d"]
            for name in ("consensus_rewards", "tx_fees"):
                mean = Fraction(sum(int(r[f"{name}_sum_wei"]) for r in part), len(part))
                assert abs(mean - int(row[f"{name}_avg_{window}d_wei"])) <= Fraction(1, 2)

    def test_modelled_days_are_continuous(self, world):
        """A day starts with the end of the previous day, plus whole validators that joined."""
        rows = world.yield_index.to_dicts()
        for before, after in pairwise(rows[: world.first // 225 + 1]):
            joined = after["start_balances_sum_wei"] - before["end_balances_sum_wei"]
            assert 0 <= joined
            assert 0 == joined % (32 * ETH * ETH)
            grown = after["effective_balances_sum_wei"] - before["effective_balances_sum_wei"]
            assert joined + before["deposits_sum_wei"] == grown
        assert_empty(
            world.yield_index.filter(pl.col("day_end") != pl.col("time") + timedelta(days=1))
        )


class TestLatestState:
    def test_agrees_with_blocks(self, world):
        """The one row agrees with blocks and epochs."""
        (state,) = world.latest_state.to_dicts()
        reached = world.blocks.filter(pl.col("status") != "scheduled")
        proposed = world.blocks.filter(pl.col("status") == "proposed")

        assert reached["slot"].max() == state["current_slot"] == world.meta["latest_slot"]
        assert proposed["slot"].max() == state["last_proposed_slot"]
        assert world.latest == state["current_epoch"]
        assert world.finalized == state["current_finalized_epoch"]
        assert (2, False) == (state["finality_delay"], state["syncing"])
        assert "USD" in json.loads(state["main_currency_ticker_prices"])


class TestSimulate:
    SMALL = {"validators": 60, "epochs": 12}  # noqa: RUF012

    def hashes(self, dataset):
        return {segment.path: segment.sha256 for segment in dataset.segments()}

    def test_same_arguments_same_bytes(self, tmp_path):
        """Two runs write the same files, byte for byte; another seed writes others."""
        one, two, other = (
            simulate(tmp_path / name, seed=seed, history_days=3, **self.SMALL)
            for name, seed in (("one", 5), ("two", 5), ("other", 6))
        )

        assert self.hashes(one) == self.hashes(two)
        assert not set(self.hashes(one).values()) & {
            s.sha256 for s in other.segments() if s.rows > 1 and s.table != "slashing_events"
        }

    def test_defaults(self, tmp_path):
        """Detailed epochs start at noon of 30 September 2026, with and without history days."""
        for days in (0, 3):
            data = simulate(tmp_path / f"{days}", history_days=days, **self.SMALL)
            epochs = data.scan("epochs").collect()
            assert datetime(2026, 9, 30, 12, 0, 23, tzinfo=UTC) == epochs["time"][0]
            assert 225 * days == epochs["epoch"][0] == data.meta["first_epoch"]

    def test_own_chain(self, tmp_path):
        """Any clock is possible: half-length slots, 16 per epoch, 64 seats; or a known chain."""
        known = simulate(tmp_path / "known", chain="hoodi", **self.SMALL)
        assert datetime(2025, 3, 17, 12, 10, tzinfo=UTC) == (
            known.scan("blocks").select("time").collect().item(0, 0)
        )
        chain = Chain(
            "devnet",
            genesis=datetime(2026, 1, 1, tzinfo=UTC),
            seconds_per_slot=6,
            slots_per_epoch=16,
            epochs_per_sync_period=8,
            sync_committee_size=64,
        )
        data = simulate(tmp_path / "x", chain=chain, **self.SMALL)

        assert (12 * 16, 3 * 64) == tuple(
            data.scan(table).select(pl.len()).collect().item() - extra
            for table, extra in (
                ("blocks", data.scan("slashing_events").filter(pl.col("kind") == "proposer")
                 .select(pl.len()).collect().item()),
                ("sync_committees", 0),
            )
        )  # fmt: skip
        assert ("devnet", 6) == (data.meta["chain"]["name"], data.meta["chain"]["seconds_per_slot"])
        assert {"0x" + "f" * 16} >= {
            b for b in data.scan("blocks").collect()["sync_aggregate_bits"] if b and "f" * 16 in b
        }

    @pytest.mark.parametrize("size", [(50, 8), (64, 9), (97, 30)])
    def test_small(self, tmp_path, size):
        """The smallest chains are consistent, too: balances change by exactly their events."""
        world = World(simulate(tmp_path / "x", validators=size[0], epochs=size[1]))
        TestBalances().test_rows_of_income(world)
        TestWall().test_is_what_the_blocks_paint(world)

        assert size[0] == world.validators.height

    @pytest.mark.parametrize(
        "wrong",
        [
            {"validators": 49},
            {"validators": True},
            {"epochs": 7},
            {"epochs": 10.5},
            {"seed": -1},
            {"history_days": "3"},
            {"validators": 99_999_999_999},
            {"epochs": 99_999_999_999},
        ],
    )
    def test_invalid_arguments(self, tmp_path, wrong):
        """The error names an invalid number of validators, epochs or days, and writes nothing."""
        with pytest.raises(UsageError, match=next(iter(wrong))):
            simulate(tmp_path / "x", **wrong)

        assert [] == list(tmp_path.iterdir())

    def test_target_must_be_new(self, tmp_path):
        """A folder with content is not changed; an empty one is used."""
        (tmp_path / "file").write_text("mine")
        with pytest.raises(DatasetError, match="already exists"):
            simulate(tmp_path, **self.SMALL)
        (tmp_path / "empty").mkdir()

        assert 60 == simulate(tmp_path / "empty", **self.SMALL).meta["validators"]
        assert {"file", "empty"} == {path.name for path in tmp_path.iterdir()}

    def test_interrupted(self, tmp_path, monkeypatch):
        """An interrupted simulation leaves nothing behind."""

        def stop(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(simulation._Simulation, "_finish", stop)
        with pytest.raises(KeyboardInterrupt):
            simulate(tmp_path / "x", **self.SMALL)

        assert [] == list(tmp_path.iterdir())

    def test_opens_again(self, tmp_path):
        """The returned dataset can be opened like any other."""
        data = simulate(tmp_path / "x", **self.SMALL)
        again = Dataset.open(tmp_path / "x")

        assert data.meta == again.meta
        assert SimpleNamespace(**again.meta).simulated is True
