"""Consistency of the derived tables with the simulated chain: one test per relation.

Expected values are computed here with plain polars from the tables of the engine: blocks, balances,
income, committees, validators and the events.
"""

import json
from collections import Counter
from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from beaconframes.simulator import simulate
from beaconframes.simulator.derived import accounts
from beaconframes.v1 import ENDPOINTS

from ..support.first_blocks import compute_first_blocks

ETH = 10**9
WEI = 10**18
KEY = ["validator_index", "epoch"]
DAILY = ["validator_index", "day"]
SIZES = (
    {"validators": 260, "epochs": 236},
    {"validators": 420, "epochs": 460, "history_days": 40},
)
WORLDS = {
    f"seed{seed}-of-{size['validators']}": (seed, size) for size in SIZES for seed in (1, 2, 3)
}
USUAL, MORE = {"seed1-of-260"}, {"seed3-of-420"}
MARKS = {
    name: [] if name in USUAL else [pytest.mark.more if name in MORE else pytest.mark.long]
    for name in WORLDS
}


class World:
    """A simulated chain with all its tables in memory."""

    def __init__(self, dataset):
        self.dataset, self.meta = dataset, dataset.meta
        for table in dataset.tables():
            setattr(self, table, dataset.scan(table).collect())
        self.first, self.latest = self.meta["first_epoch"], self.meta["latest_epoch"]
        self.finalized = self.meta["finalized_epoch"]
        self.days = range(self.first // 225, self.finalized // 225)
        self.canonical = self.blocks.filter(pl.col("status") == "proposed")
        self.real = self.canonical.filter(pl.col("proposer_index").is_not_null())
        income = self.income_history
        gains = [c for c in income.columns if c.endswith("_reward_gwei")]
        losses = [c for c in income.columns if c.endswith("_penalty_gwei")]
        self.net = income.select(*KEY, gwei=pl.sum_horizontal(gains) - pl.sum_horizontal(losses))
        self.final_attestations = self.attestations.filter(pl.col("epoch") <= self.finalized)

    def find_address(self, validator):
        """Return the address of a validator's withdrawal credentials."""
        return "0x" + self.validators["withdrawal_credentials"][validator][-40:]


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


def assert_same_rows(one, other):
    """Assert that two frames have the same rows, in any order and with any integer types."""
    assert sorted(one.rows()) == sorted(other.rows())


def count(rows, *key):
    """Count rows by key."""
    return rows.group_by(key).agg(count=pl.len().cast(pl.Int64))


class TestTables:
    def test_none_is_empty(self, world):
        """Every table of the catalogue has rows, with the columns of its loader."""
        for endpoint in ENDPOINTS:
            table = endpoint.table
            rows = getattr(world, table.table_name, pl.DataFrame())
            assert rows.height, f"no module of simulator/derived adds rows of {table.__name__}"
            assert table.schema() == rows.schema

    def test_keys(self, world):
        """No key occurs twice, and only nullable parts of a key are null."""
        for endpoint in ENDPOINTS:
            table = endpoint.table
            rows = getattr(world, table.table_name)
            assert rows.height == rows.select(table.key()).unique().height, table.table_name

    def test_times(self, world):
        """The time of an item is the start of its block's slot; that of a duty, of its epoch."""
        genesis = world.dataset.scan("epochs").select("time", "epoch").first().collect().row(0)
        genesis = genesis[0] - timedelta(seconds=384 * genesis[1])
        for table, unit, seconds in (
            ("attestations", "epoch", 384),
            ("slot_attestations", "block_slot", 12),
            ("slot_withdrawals", "block_slot", 12),
            ("slot_deposits", "block_slot", 12),
            ("voluntary_exits", "block_slot", 12),
            ("attester_slashings", "block_slot", 12),
            ("proposer_slashings", "block_slot", 12),
            ("validator_withdrawals", "slot", 12),
            ("bls_changes", "slot", 12),
            ("execution_blocks", "slot", 12),
            ("validator_stats", "day", 86_400),
        ):
            expected = genesis + pl.duration(seconds=pl.col(unit) * seconds)
            assert_empty(getattr(world, table).filter(pl.col("time") != expected))

    def test_items_are_in_canonical_blocks(self, world):
        """Items name the root of the canonical block of their slot, and are numbered from 0."""
        roots = world.canonical.select(block_slot="slot", block_root="block_root")
        for table in (
            "slot_attestations", "slot_deposits", "voluntary_exits",
            "attester_slashings", "proposer_slashings",
        ):  # fmt: skip
            rows = getattr(world, table)
            assert_empty(rows.join(roots, ["block_slot", "block_root"], how="anti"))
            place = pl.int_range(pl.len()).over("block_slot")
            assert_empty(rows.filter(pl.col("block_index") != place))

    def test_blocks_count_their_items(self, world):
        """The number of items of each kind is that of the canonical block."""
        since = (world.latest - 99) * 32
        for table, column, first in (
            ("slot_attestations", "attestations_count", since),
            ("slot_deposits", "deposits_count", 0),
            ("slot_withdrawals", "withdrawals_count", 0),
            ("voluntary_exits", "voluntary_exits_count", 0),
            ("attester_slashings", "attester_slashings_count", 0),
            ("proposer_slashings", "proposer_slashings_count", 0),
        ):
            blocks = world.canonical.filter(pl.col("slot") >= first, pl.col(column) > 0)
            assert_same_rows(
                blocks.select("slot", column), count(getattr(world, table), "block_slot")
            )


class TestDuties:
    def test_one_per_active_validator_and_epoch(self, world):
        """Each active validator has one duty in the running epoch and the hundred before."""
        far = pl.lit(2**62)
        epochs = pl.DataFrame({"epoch": range(world.latest - 100, world.latest + 1)})
        active = world.validators.join(epochs, how="cross").filter(
            pl.col("activation_epoch") <= pl.col("epoch"),
            pl.col("epoch") < pl.col("exit_epoch").fill_null(far),
        )
        expected = active.select(KEY).sort(KEY)

        assert expected.equals(world.attestations.select(KEY))
        assert_empty(world.attestations.filter(pl.col("attester_slot") // 32 != pl.col("epoch")))

    def test_inclusion(self, world):
        """Included in a canonical block after the attested slot, by the end of the next epoch."""
        included = pl.col("inclusion_slot").is_not_null()
        rows = world.attestations

        assert_empty(rows.filter(included != (pl.col("status") == "included")))
        assert_empty(rows.filter(pl.col("inclusion_slot") <= pl.col("attester_slot")))
        assert_empty(rows.filter(pl.col("inclusion_slot") // 32 > pl.col("epoch") + 1))
        assert_empty(
            rows.filter(included).join(
                world.real, left_on="inclusion_slot", right_on="slot", how="anti"
            )
        )
        assert 0.9 < rows.filter(pl.col("epoch") < world.latest - 1).select(included.mean()).item()

    def test_agree_with_income(self, world):
        """A missed duty earns nothing; a timely one does; a timely head is one slot later."""
        slashed = world.slashing_events.select(KEY[0], since=pl.col("slot") // 32)
        rows = world.final_attestations.join(world.income_history, KEY).join(
            slashed, KEY[0], how="left"
        )
        assert world.final_attestations.height == rows.height
        whole = rows.filter(pl.col("since").is_null() | (pl.col("epoch") < pl.col("since")))
        delay = pl.col("inclusion_slot") - pl.col("attester_slot")
        missed = pl.col("status") == "missed"
        source, target, head = (
            pl.col(f"attestation_{flag}_reward_gwei") for flag in ("source", "target", "head")
        )

        assert_empty(rows.filter(missed & (source + target + head > 0)))
        assert_empty(rows.filter(missed & (pl.col("attestation_source_penalty_gwei") == 0)))
        assert_empty(whole.filter(~missed & (delay <= 5) & (source == 0)))
        assert_empty(whole.filter((delay > 5) & (source > 0)))
        assert_empty(whole.filter((head > 0) & (delay != 1)))
        assert whole.filter(missed).height > 10

    def test_misses_exist_for_all_epochs(self, world):
        """The missed attestation events are the missed duties, and cost the source vote."""
        since = world.latest - 100
        recent = world.missed_attestation_events.filter(pl.col("epoch") >= since)
        missed = world.final_attestations.filter(pl.col("status") == "missed")

        assert_same_rows(recent.select(KEY), missed.select(KEY))
        paid = world.missed_attestation_events.join(world.income_history, KEY, how="left")
        assert_empty(paid.filter(pl.col("attestation_source_penalty_gwei").fill_null(0) == 0))

    def test_efficiency(self, world):
        """2 minus the mean of 1 / (inclusion - slot), 0 when missed, over the last 100 epochs."""
        over = world.attestations.filter(pl.col("epoch") < world.latest)
        worth = (1 / (pl.col("inclusion_slot") - pl.col("attester_slot"))).fill_null(0)
        expected = dict(over.group_by("validator_index").agg(2 - worth.mean()).rows())
        found = dict(world.attestation_efficiency.rows())

        assert expected == pytest.approx(found, abs=1e-12)
        assert 1 <= min(found.values()) <= max(found.values()) <= 2


class TestSlotAttestations:
    def test_aggregate_the_duties(self, world):
        """Each attester is in one aggregate, in the block and for the slot of its duty."""
        since = (world.latest - 99) * 32
        names = {"validators": "validator_index", "slot": "attester_slot"}
        found = world.slot_attestations.rename(names).explode(
            "validator_index", empty_as_null=False
        )
        expected = world.attestations.filter(pl.col("inclusion_slot") >= since)

        assert {0} == set(world.slot_attestations["committee_index"])
        assert_same_rows(
            found.select("validator_index", "attester_slot", "block_slot"),
            expected.select("validator_index", "attester_slot", "inclusion_slot"),
        )

    def test_bits(self, world):
        """Bit i is the i-th validator with a duty in the slot; the highest bit ends the list."""
        members = dict(
            world.attestations.sort("attester_slot", "validator_index")
            .group_by("attester_slot", maintain_order=True)
            .agg("validator_index")
            .rows()
        )
        rows = world.slot_attestations.select("slot", "validators", "aggregation_bits")
        for slot, validators, bits in rows.sample(fraction=0.2, seed=1).rows():
            number = int.from_bytes(bytes.fromhex(bits[2:]), "little")
            size = number.bit_length() - 1
            assert len(members[slot]) == size
            assert validators == [members[slot][i] for i in range(size) if number >> i & 1]

    def test_votes(self, world):
        """Votes name canonical blocks; most name the newest, and their epoch's first."""
        slots = dict(world.canonical.select("block_root", "slot").rows())
        by_slot = world.canonical["slot"].to_numpy()

        def newest(slot):
            return int(by_slot[np.searchsorted(by_slot, slot, side="right") - 1])

        right = Counter()
        for row in world.slot_attestations.to_dicts():
            epoch = row["slot"] // 32
            assert (epoch, max(epoch - 1, 0)) == (row["target_epoch"], row["source_epoch"])
            assert slots[row["source_root"]] == newest(row["source_epoch"] * 32)
            weight = len(row["validators"])
            target = slots[row["target_root"]] == newest(epoch * 32)
            head = slots[row["beacon_block_root"]] == newest(row["slot"])
            assert slots[row["beacon_block_root"]] <= row["slot"]
            right.update(all=weight, target=weight * target, head=weight * head)
        assert 0.99 < right["target"] / right["all"] <= 1
        assert 0.9 < right["head"] / right["all"] <= right["target"] / right["all"]

    def test_votes_for_a_block(self, world):
        """Blocks of the last 100 epochs have the votes of included aggregates; others have none."""
        votes = world.slot_attestations.group_by("beacon_block_root").agg(
            named=pl.col("validators").list.len().sum()
        )
        latest = world.blocks["epoch"].max()
        counted = pl.col("epoch") > latest - 100
        real = pl.col("status").is_in(["proposed", "orphaned"])
        blocks = world.blocks.filter(counted, real).join(
            votes, left_on="block_root", right_on="beacon_block_root", how="left"
        )

        assert blocks["votes"].to_list() == blocks["named"].fill_null(0).to_list()
        assert blocks.filter(status="proposed")["votes"].mean() > 1
        assert 0 == blocks.filter(status="orphaned")["votes"].sum()
        rest = world.blocks.filter(~counted | ~real)
        assert rest.height == rest["votes"].null_count()

    def test_wrong_votes_earn_nothing(self, world):
        """A wrong target earns no target reward, and a wrong head no head reward."""
        slots = dict(world.canonical.select("block_root", "slot").rows())
        by_slot = world.canonical["slot"].to_list()
        newest = pl.DataFrame({"slot": by_slot, "newest": by_slot})
        rows = (
            world.slot_attestations.filter(pl.col("target_epoch") <= world.finalized)
            .with_columns(
                head=pl.col("beacon_block_root").replace_strict(slots),
                target=pl.col("target_root").replace_strict(slots),
                start=pl.col("target_epoch") * 32,
            )
            .sort("slot")
            .join_asof(newest, on="slot")
            .join_asof(newest.rename({"slot": "start", "newest": "goal"}), on="start")
            .rename({"validators": "validator_index", "target_epoch": "epoch"})
            .explode("validator_index", empty_as_null=False)
            .join(world.income_history, KEY)
        )
        for kind, wrong in (
            ("target", pl.col("target") != pl.col("goal")),
            ("head", pl.col("head") != pl.col("newest")),
        ):
            some = rows.filter(wrong)
            assert some.height
            assert 0 == some[f"attestation_{kind}_reward_gwei"].sum()


class TestDeposits:
    def test_included_are_those_that_move_balances(self, world):
        """Blocks include the deposits that change balances, for the same keys and amounts."""
        keys = world.validators.select("validator_index", "pubkey")
        expected = world.deposit_events.join(keys, "validator_index")

        assert_same_rows(
            world.slot_deposits.select("block_slot", "pubkey", "amount_gwei"),
            expected.select("slot", "pubkey", "amount_gwei"),
        )

    def test_sum_to_balances(self, world):
        """Deposits plus income minus withdrawals are the balance, for chains from genesis."""
        keys = world.validators.select("validator_index", "pubkey")
        end = world.finalized * 32
        taken = world.slot_deposits.select("signature", slot="block_slot")
        deposits = world.deposits.join(keys, "pubkey").join(taken, "signature", how="left")
        moved = pl.concat(
            [
                deposits.filter(pl.col("slot").fill_null(0) < end).select(
                    KEY[0], gwei="amount_gwei"
                ),
                world.net.filter(pl.col("epoch") < world.finalized).select(KEY[0], "gwei"),
                # The balance is that after the first block of the epoch.
                world.validator_withdrawals.filter(pl.col("slot") <= end).select(
                    KEY[0], gwei=-pl.col("amount_gwei")
                ),
            ]
        )
        if world.first:
            # Rewards before the first epoch are known only if they were withdrawn.
            late = world.balance_history.group_by(KEY[0]).agg(pl.col("epoch").min())
            late = late.filter(pl.col("epoch") > world.first)
            moved = moved.join(late, KEY[0], how="semi")
        sums = moved.group_by(KEY[0]).agg(pl.col("gwei").sum())
        balances = world.balance_history.filter(pl.col("epoch") == world.finalized)
        rows = sums.join(balances, KEY[0]).join(compute_first_blocks(world), KEY, how="left")
        rest = pl.col("balance_gwei") - pl.col("gwei")

        assert rows.height >= 3
        assert_empty(
            rows.filter(~rest.is_between(pl.col("low").fill_null(0), pl.col("high").fill_null(0)))
        )

    def test_every_validator_has_a_deposit(self, world):
        """Each has a deposit of its own key and credentials, of 32 ETH in most cases."""
        changed = world.bls_changes.select(KEY[0], old="withdrawal_credentials_0x00")
        rows = world.validators.join(changed, KEY[0], how="left").join(
            world.deposits, "pubkey", suffix="_deposited"
        )

        assert world.validators.height == rows[KEY[0]].n_unique()
        has_switched = pl.col(KEY[0]).is_in(world.switch_events[KEY[0]].implode())
        now = pl.col("withdrawal_credentials")
        before = pl.when(has_switched).then("0x01" + now.str.slice(4)).otherwise(now)
        began = pl.coalesce("old", before)
        assert_empty(rows.filter(began != pl.col("withdrawal_credentials_deposited")))
        assert 0.9 < (rows["amount_gwei"] == 32 * ETH).mean() < 1

    def test_events_come_before_inclusion(self, world):
        """The contract's event is in an execution block before the block that includes it."""
        rows = world.slot_deposits.join(world.deposits, "signature", suffix="_event")
        blocks = world.real.select(block_number="exec_block_number", made="exec_time")

        assert world.slot_deposits.height == rows.height
        assert_empty(rows.filter(pl.col("time_event") >= pl.col("time")))
        found = rows.join(blocks, "block_number")
        assert rows.height == found.height
        assert_empty(found.filter(pl.col("time_event") != pl.col("made")))

    def test_numbers_and_transactions(self, world):
        """Numbers start at 0 in the order of blocks; a transaction has one sender and one block."""
        rows = world.deposits.with_columns(
            number=pl.Series(
                [
                    int.from_bytes(bytes.fromhex(text[2:]), "little")
                    for text in world.deposits["merkletree_index"]
                ]
            )
        ).sort("number")

        assert [*range(rows.height)] == rows["number"].to_list()
        assert rows["block_number"].is_sorted()
        assert rows["time"].is_sorted()
        sent = ["tx_hash", "block_number", "tx_index", "from_address", "time"]
        transactions = rows.select(sent).unique()
        assert transactions.height == rows["tx_hash"].n_unique()
        assert transactions.height == rows.select("block_number", "tx_index").unique().height
        assert rows.height > transactions.height
        requests = world.deposits.join(world.deposit_requests, "signature", how="semi")
        included = world.deposits.join(world.slot_deposits, "signature", how="semi")
        # Each deposit in a block has a request before it; one deposit is dropped.
        assert requests.height == included.height + 1
        # E16: a transaction has a few dozen deposits at most.
        assert 24 == rows.group_by("tx_hash").len()["len"].max()

    def test_calls(self, world):
        """The call data of a single deposit has its key, credentials and signature."""
        size = pl.len().over("tx_hash")
        assert_empty(world.deposits.filter((size > 1) != pl.col("tx_input").is_null()))
        for row in world.deposits.filter(pl.col("tx_input").is_not_null()).to_dicts():
            data = bytes.fromhex(row["tx_input"][2:])
            assert bytes.fromhex("22895118") == data[:4]
            words = data[4:]
            for place, name in enumerate(("pubkey", "withdrawal_credentials", "signature")):
                start = int.from_bytes(words[32 * place : 32 * place + 32], "big")
                length = int.from_bytes(words[start : start + 32], "big")
                assert row[name] == "0x" + words[start + 32 : start + 32 + length].hex()

    def test_invalid_signatures(self, world):
        """A top-up has an invalid signature, and so does the dropped deposit."""
        rows = world.deposits.filter(~pl.col("valid_signature"))
        known = set(world.validators["pubkey"])
        included = set(world.slot_deposits["signature"])

        assert [False, True] == sorted(row["pubkey"] in known for row in rows.to_dicts())
        for row in rows.to_dicts():
            assert (row["pubkey"] in known) == (row["signature"] in included)
        assert not world.deposits["removed"].any()

    def test_origins(self, world):
        """Origins are unique by sender, key and validity; one sender has many keys."""
        keys = world.validators.select("pubkey", "validator_index")
        expected = world.deposits.join(keys, "pubkey", how="left").select(
            "from_address", "pubkey", "valid_signature", "validator_index"
        )
        found = world.deposit_origin

        assert expected.unique().sort(expected.columns).equals(found.sort(found.columns))
        assert 1 == found["validator_index"].null_count()
        most = found.group_by("from_address").len()["len"].max()
        assert world.meta["validators"] * 2 // 5 < most
        both = count(found, "from_address", "pubkey").filter(pl.col("count") == 2)
        assert 1 == both.height


class TestOperations:
    def test_withdrawals(self, world):
        """Both tables have the withdrawals of the sweep, to the address of the credentials."""
        events = world.withdrawal_events
        tails = world.validators.select(
            KEY[0], address="0x" + pl.col("withdrawal_credentials").str.slice(-40)
        )
        roots = world.canonical.select("slot", "epoch", "block_root")
        expected = events.join(tails, KEY[0], maintain_order="left").join(
            roots, "slot", maintain_order="left"
        )
        by_validator, by_slot = world.validator_withdrawals, world.slot_withdrawals

        assert events.height > 1000
        assert expected.select(by_validator.drop("time").columns).equals(by_validator.drop("time"))
        renamed = expected.rename({"slot": "block_slot"})
        assert renamed.select(by_slot.drop("time").columns).equals(by_slot.drop("time"))

    def test_total_withdrawals(self, world):
        """On a chain from genesis, withdrawals add up to the validators' totals."""
        sums = world.validator_withdrawals.group_by(KEY[0]).agg(pl.col("amount_gwei").sum())
        rows = world.validators.join(sums, KEY[0], how="left")
        before = rows["total_withdrawals_gwei"] - rows["amount_gwei"].fill_null(0)

        assert before.min() == 0
        assert (world.first == 0) == (before.max() == 0)

    def test_bls_changes(self, world):
        """A validator has an address and withdrawals only since its BLS change."""
        assert_same_rows(
            world.bls_changes.select("slot", KEY[0]),
            world.bls_change_events.select("slot", KEY[0]),
        )
        paid = world.validator_withdrawals
        later = 0
        for row in world.bls_changes.to_dicts():
            validator = row["validator_index"]
            new = world.validators["withdrawal_credentials"][validator]
            assert new == row["withdrawal_credentials_0x01"]
            assert "0x01" + "0" * 22 + row["address"][2:] == new
            assert "0x00" == row["withdrawal_credentials_0x00"][:4]
            mine = paid.filter(pl.col(KEY[0]) == validator)
            assert 0 == mine.filter(pl.col("slot") <= row["slot"]).height
            later += mine.height
        assert later
        with_bls = world.validators.filter(pl.col("withdrawal_credentials").str.starts_with("0x00"))
        assert with_bls.height
        assert 0 == paid.join(with_bls, KEY[0]).height

    def test_bls_changes_are_in_blocks(self, world):
        """A change names the canonical block of its slot."""
        roots = world.real.select("slot", "epoch", "block_root")
        key = ["slot", "epoch", "block_root"]

        assert_empty(world.bls_changes.join(roots, key, how="anti"))
        assert world.bls_changes[KEY[0]].n_unique() == world.bls_changes.height > 1

    def test_exits(self, world):
        """Validators exit five epochs after a voluntary exit; all others that exit are slashed."""
        rows = world.voluntary_exits.join(world.validators, KEY[0])

        assert rows.height == world.voluntary_exits.height > 2
        assert_empty(rows.filter(pl.col("epoch") != pl.col("block_slot") // 32))
        assert_empty(rows.filter(pl.col("exit_epoch") != pl.col("epoch") + 5))
        leaving = world.validators.filter(pl.col("exit_epoch") > world.first)
        others = leaving.join(rows, KEY[0], how="anti")
        assert others["slashed"].all()


class TestSlashings:
    def test_attesters(self, world):
        """Two different votes of one target; only the slashed validator signed both."""
        events = world.slashing_events.filter(pl.col("kind") == "attester")
        slashed = dict(events.select("slot", KEY[0]).rows())
        roots = set(world.canonical["block_root"])

        assert world.attester_slashings.height == events.height
        for row in world.attester_slashings.to_dicts():
            one, two = (set(row[f"attestation{n}_indices"]) for n in (1, 2))
            assert {slashed[row["block_slot"]]} == one & two
            assert len(one) > 1 < len(two)
            assert row["attestation1_target_epoch"] == row["attestation2_target_epoch"]
            heads = [row[f"attestation{n}_beacon_block_root"] for n in (1, 2)]
            assert heads[0] != heads[1]
            assert heads[0] in roots
            assert row["attestation1_slot"] < row["block_slot"]
            active = world.validators.filter(
                (pl.col("activation_epoch") <= row["attestation1_target_epoch"])
                & (pl.col("exit_epoch").fill_null(2**62) > row["attestation1_target_epoch"])
            )[KEY[0]]
            assert one | two <= set(active)

    def test_proposers(self, world):
        """Two headers of one slot, which are those of the canonical and the orphaned block."""
        events = world.slashing_events.filter(pl.col("kind") == "proposer")
        blocks = world.blocks.filter(pl.col("block_root").is_not_null())

        assert_same_rows(
            world.proposer_slashings.select("block_slot", "proposer_index", "header1_slot"),
            events.select("slot", KEY[0], "offence_slot"),
        )
        for row in world.proposer_slashings.to_dicts():
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

    def test_states(self, world):
        """Exactly the validators in evidence were slashed during the chain."""
        named = world.proposer_slashings["proposer_index"].to_list()
        for row in world.attester_slashings.to_dicts():
            named += set(row["attestation1_indices"]) & set(row["attestation2_indices"])
        slashed = world.validators.filter(pl.col("slashed"), pl.col("exit_epoch") > world.first)

        assert sorted(slashed[KEY[0]]) == sorted(named)


class TestExecution:
    def test_one_per_canonical_block(self, world):
        """Each canonical block with a payload has a row that agrees with the beacon block."""
        names = {
            "block_number": "exec_block_number",
            "consensus_block_number": "exec_block_number",
            "block_hash": "exec_block_hash",
            "parent_hash": "exec_parent_hash",
            "time": "exec_time",
            "fee_recipient": "exec_fee_recipient",
            "gas_limit": "exec_gas_limit",
            "gas_used": "exec_gas_used",
            "base_fee_per_gas_wei": "exec_base_fee_per_gas_wei",
            "transactions_count": "exec_transactions_count",
            "slot": "slot",
            "epoch": "epoch",
            "proposer_index": "proposer_index",
        }
        expected = world.real.select(**names).sort("block_number")

        assert expected.equals(world.execution_blocks.select(*names))
        final = pl.col("epoch") <= world.finalized
        assert_empty(world.execution_blocks.filter(final != pl.col("finalized")))

    def test_fees_are_those_of_income(self, world):
        """The fees of a proposer's blocks in an epoch are those of its income."""
        sums = (
            world.execution_blocks.filter("finalized")
            .group_by("epoch", validator_index="proposer_index")
            .agg(fees=pl.col("block_reward_wei").sum())
        )
        rows = world.income_history.join(sums, KEY, how="left")

        assert_empty(rows.filter(pl.col("tx_fee_reward_wei") != pl.col("fees").fill_null(0)))
        assert sums.height > 1000

    def test_relays(self, world):
        """A block from a relay pays its builder the fees, and the proposer a payment."""
        rows = world.execution_blocks
        built = pl.col("relay_tag").is_not_null()
        payment, fees = pl.col("block_mev_reward_wei"), pl.col("block_reward_wei")

        assert 0.7 < rows.select(built.mean()).item() < 0.9
        assert_empty(rows.filter(built != (payment > 0)))
        assert_empty(rows.filter(built != pl.col("relay_builder_pubkey").is_not_null()))
        assert_empty(rows.filter(built != pl.col("relay_producer_fee_recipient").is_not_null()))
        assert_empty(rows.filter(pl.col("producer_reward_wei") != pl.when(built).then(payment)
                            .otherwise(fees)))  # fmt: skip
        assert rows["relay_tag"].drop_nulls().str.starts_with("sim-").all()
        builders = rows.filter(built).select("fee_recipient", "relay_builder_pubkey").unique()
        assert builders.height == builders["fee_recipient"].n_unique() > 2

    def test_recipients_belong_to_proposers(self, world):
        """Each proposer has one address, for all builders."""
        paid = pl.coalesce("relay_producer_fee_recipient", "fee_recipient")
        addresses = world.execution_blocks.group_by("proposer_index").agg(paid.n_unique())

        assert {1} == set(addresses["relay_producer_fee_recipient"])

    def test_performance(self, world):
        """Execution performance of the last days is the sum of the proposer's block rewards."""
        got, slot = pl.col("producer_reward_wei"), pl.col("slot")
        head = world.meta["latest_slot"]
        sums = world.execution_blocks.group_by(validator_index="proposer_index").agg(
            *(
                got.filter(slot > head - days * 7200).sum().alias(f"performance_{days}d_wei")
                for days in (1, 7, 31, 365)
            ),
            performance_total_wei=got.sum(),
        )
        expected = world.validators.select(KEY[0]).join(
            sums, KEY[0], how="left", maintain_order="left"
        )

        assert expected.with_columns(pl.exclude(KEY[0]).fill_null(0)).rows() == (
            world.execution_performance.rows()
        )


class TestDailyStats:
    @pytest.fixture
    def days(self, world):
        return world.validator_stats.filter(pl.col("day") >= 0)

    def test_days(self, world, days):
        """Complete days have all validators that were known by their end."""
        starts = world.balance_history.group_by(KEY[0]).agg(pl.col("epoch").min())
        grid = starts.join(pl.DataFrame({"day": world.days}), how="cross")
        expected = grid.filter(pl.col("epoch") <= (pl.col("day") + 1) * 225)

        assert len(world.days)
        assert expected.select(DAILY).sort(DAILY).equals(days.select(DAILY))

    def test_balances(self, world, days):
        """First, last, minimum and maximum of the balances at the epochs of the day."""
        states = world.balance_history.with_columns(day=pl.col("epoch") // 225)
        for name in ("balance_gwei", "effective_balance_gwei"):
            value = pl.col(name)
            inside = states.group_by(DAILY).agg(
                low=value.min(), high=value.max(), start=value.filter(pl.col("epoch") % 225 == 0)
                .first()
            )  # fmt: skip
            after = states.filter(pl.col("epoch") % 225 == 0).select(
                KEY[0], pl.col("day") - 1, end=name
            )
            rows = days.join(inside, DAILY, how="left").join(after, DAILY)
            assert days.height == rows.height
            for kind, column in (
                ("start", "start"), ("end", "end"), ("min", "low"), ("max", "high"),
            ):  # fmt: skip
                assert_empty(rows.filter(pl.col(f"{kind}_{name}") != pl.col(column).fill_null(0)))

    def test_income(self, world, days):
        """M3: end minus start minus deposits plus withdrawals is the net income of the day.

        Balances are those after the first block of a day, whose income counts for the day before.
        """
        net = (
            world.net.with_columns(day=pl.col("epoch") // 225)
            .group_by(DAILY)
            .agg(pl.col("gwei").sum())
        )
        first = compute_first_blocks(world).filter(pl.col("epoch") % 225 == 0)
        first = first.select(KEY[0], "low", "high", day=pl.col("epoch") // 225)
        after = first.with_columns(pl.col("day") - 1)
        rows = (
            days.join(net, DAILY, how="left")
            .join(first, DAILY, how="left")
            .join(after, DAILY, how="left", suffix="_after")
            .with_columns(pl.col("gwei", "^(low|high).*$").fill_null(0))
        )
        moved = (
            pl.col("end_balance_gwei")
            - pl.col("start_balance_gwei")
            - pl.col("deposits_amount_gwei")
            + pl.col("withdrawals_amount_gwei")
        )

        least = pl.col("low_after") - pl.col("high")
        most = pl.col("high_after") - pl.col("low")
        assert_empty(rows.filter(~(moved - pl.col("gwei")).is_between(least, most)))

    def test_payments(self, world, days):
        """Deposits and withdrawals are counted on the day in whose end balance they are first.

        The first block of a day is in the balance at its start.
        """
        keys = world.validators.select("pubkey", KEY[0])
        for kind, rows in (
            ("deposits", world.slot_deposits.join(keys, "pubkey")),
            ("withdrawals", world.slot_withdrawals),
        ):
            expected = (
                rows.with_columns(day=(pl.col("block_slot") - 1) // 7200)
                .filter(pl.col("day").is_in(list(world.days)))
                .group_by(DAILY)
                .agg(pl.len(), pl.col("amount_gwei").sum())
            )
            found = days.filter(pl.col(f"{kind}_count") > 0)
            assert_same_rows(found.select(*DAILY, f"{kind}_count", f"{kind}_amount_gwei"), expected)

    def test_proposals(self, world, days):
        """Blocks are counted by proposer and status, slashings in the canonical ones."""
        rows = world.blocks.with_columns(
            day=pl.col("epoch") // 225, validator_index="proposer_index"
        ).filter(pl.col("day") < world.days.stop, pl.col(KEY[0]).is_not_null())
        for status in ("proposed", "missed", "orphaned"):
            expected = count(rows.filter(pl.col("status") == status), *DAILY)
            found = days.filter(pl.col(f"{status}_blocks") > 0)
            assert_same_rows(found.select(*DAILY, f"{status}_blocks"), expected)
        for kind in ("attester", "proposer"):
            expected = (
                rows.filter(pl.col("status") == "proposed")
                .group_by(DAILY)
                .agg(pl.col(f"{kind}_slashings_count").sum())
                .filter(pl.col(f"{kind}_slashings_count") > 0)
            )
            found = days.filter(pl.col(f"{kind}_slashings") > 0)
            assert_same_rows(found.select(*DAILY, f"{kind}_slashings"), expected)

    def test_missed_attestations(self, world, days):
        """Misses are those of the day; none is orphaned."""
        rows = world.missed_attestation_events.with_columns(day=pl.col("epoch") // 225)
        expected = count(rows.filter(pl.col("day") < world.days.stop), *DAILY)

        assert_same_rows(
            days.filter(pl.col("missed_attestations") > 0).select(*DAILY, "missed_attestations"),
            expected,
        )
        assert 0 == days["orphaned_attestations"].sum()

    def test_sync_duties(self, world, days):
        """A seat has a duty in every block: signed if its bit is set, missed if not."""
        good = world.real.with_columns(day=pl.col("epoch") // 225).filter(
            pl.col("day") < world.days.stop
        )
        lone = world.blocks.filter(
            pl.col("status") == "orphaned", ~pl.col("slot").is_in(good["slot"].to_list())
        ).filter(pl.col("epoch") // 225 < world.days.stop)
        seats = world.sync_committees.partition_by("period", as_dict=True)
        members = {p: rows[KEY[0]].to_numpy() for (p,), rows in seats.items()}
        done, held, orphaned = np.zeros((3, world.days.stop, world.meta["validators"]), np.int64)
        for (epoch,), rows in good.partition_by("epoch", as_dict=True).items():
            text = "".join(rows["sync_aggregate_bits"].str.slice(2))
            data = np.frombuffer(bytes.fromhex(text), np.uint8).reshape(-1, 64)
            signed = np.unpackbits(data, axis=1, bitorder="little").astype(int)
            np.add.at(done[epoch // 225], members[epoch // 256], signed.sum(axis=0))
            np.add.at(held[epoch // 225], members[epoch // 256], rows.height)
        for epoch in lone["epoch"].to_list():
            np.add.at(orphaned[epoch // 225], members[epoch // 256], 1)
        at = days["day"].to_numpy(), days[KEY[0]].to_numpy()
        for name, expected in (
            ("participated", done), ("missed", held - done), ("orphaned", orphaned),
        ):  # fmt: skip
            assert expected[at].tolist() == days[f"{name}_sync"].to_list()
            assert expected.sum() == days[f"{name}_sync"].sum()

    def test_genesis_day(self, world):
        """The day before the first has the deposits of genesis, if the chain starts there."""
        rows = world.validator_stats.filter(pl.col("day") < 0)
        began = world.balance_history.filter(pl.col("epoch") == 0)

        assert began[KEY[0]].to_list() == rows[KEY[0]].to_list()
        assert began["balance_gwei"].to_list() == rows["deposits_amount_gwei"].to_list()
        assert {-1} >= set(rows["day"])


class TestRankings:
    def test_performance(self, world):
        """Days, weeks and the rest are sums of net income by day; today is the rest."""
        day = pl.col("epoch") // 225
        gwei, stop = pl.col("gwei"), world.days.stop
        sums = world.net.group_by(KEY[0]).agg(
            *(
                gwei.filter(day.is_between(stop - days, stop - 1)).sum().alias(f"{days}d")
                for days in (1, 7, 31, 365)
            ),
            today=gwei.filter(day >= stop).sum(),
            total=gwei.sum(),
        )
        rows = world.performance.join(sums, KEY[0], how="left")

        assert world.validators[KEY[0]].to_list() == world.performance[KEY[0]].to_list()
        for name in ("today", "total"):
            assert_empty(
                rows.filter(pl.col(f"performance_{name}_gwei") != pl.col(name).fill_null(0))
            )
        fresh = world.validators.filter(
            pl.col("activation_epoch").is_null() | (pl.col("activation_epoch") // 225 >= stop)
        )
        assert fresh.height
        for days in (1, 7, 31, 365):
            column = pl.col(f"performance_{days}d_gwei")
            assert_empty(rows.filter(column != pl.col(f"{days}d").fill_null(0)))
            assert fresh[KEY[0]].to_list() == rows.filter(column.is_null())[KEY[0]].to_list()
        balances = world.validators["balance_gwei"]
        assert balances.equals(world.performance["balance_gwei"])

    def test_ranks(self, world):
        """Rank 1 earned most in 7 days; ranks have no gaps."""
        rows = world.performance.filter(pl.col("rank_7d").is_not_null()).sort("rank_7d")

        assert [*range(1, rows.height + 1)] == rows["rank_7d"].to_list()
        assert rows["performance_7d_gwei"].is_sorted(descending=True)
        assert rows.height == world.performance["performance_7d_gwei"].is_not_null().sum()

    def test_leaderboard(self, world):
        """The first hundred by rank, with the balance at the end of the last day."""
        top = world.performance.sort("rank_7d", nulls_last=True).head(100)
        names = [n for n in world.leaderboard.columns if n != "balance_gwei"]
        ends = world.balance_history.filter(pl.col("epoch") == world.days.stop * 225)
        balances = dict(ends.select(KEY[0], "balance_gwei").rows())

        assert top.select(names).equals(world.leaderboard.select(names))
        assert [balances[v] for v in world.leaderboard[KEY[0]]] == (
            world.leaderboard["balance_gwei"].to_list()
        )

    def test_luck(self, world):
        """Proposed blocks divided by slots times the share of the stake, in the time frame."""
        frames = {"5 days": 5, "week": 7, "month": 30, "6 weeks": 45, "2 months": 60}
        validators = world.validators.with_columns(
            active=(pl.col("activation_epoch") <= world.latest)
            & (pl.col("exit_epoch").fill_null(2**62) > world.latest)
        )
        everyone = validators.filter("active")["effective_balance_gwei"].sum()
        rows = {row["validators"]: row for row in world.proposal_luck.to_dicts()}

        assert {"0", "9", "0,1,2,3,4,5,6,7,8,9"} <= set(rows)
        for lookup, row in rows.items():
            members = [int(index) for index in lookup.split(",")]
            own = validators.filter(pl.col(KEY[0]).is_in(members), "active")
            share = own["effective_balance_gwei"].sum() / everyone
            assert 1 / share == pytest.approx(row["average_proposal_interval"])
            slots = frames.get(row["time_frame"], 0) * 7200
            mine = world.canonical.filter(
                pl.col("proposer_index").is_in(members),
                pl.col("slot") > world.meta["latest_slot"] - slots,
            )
            luck = mine.height / (slots * share) if slots else None
            assert luck == (row["proposal_luck"] and pytest.approx(row["proposal_luck"]))


class TestAccounts:
    def test_queue(self, world):
        """Pending validators are entering; those with a future exit epoch are exiting."""
        (row,) = world.validator_queue.to_dicts()
        pending = world.validators.filter(pl.col("status") == "pending")
        leaving = world.validators.filter(pl.col("exit_epoch") > world.latest)
        head = world.epochs.filter(pl.col("epoch") == world.latest)

        assert head["validators_count"].item() == row["validators_count"]
        assert (pending.height, leaving.height) == (row["entering_count"], row["exiting_count"])
        assert (
            pending["effective_balance_gwei"].sum(), leaving["effective_balance_gwei"].sum(),
        ) == (row["entering_balance_gwei"], row["exiting_balance_gwei"])  # fmt: skip
        assert leaving.height > 2

    def test_withdrawal_credentials(self, world):
        """All validators by credentials; an address has many validators, or is a contract."""
        expected = world.validators.select(
            credentials="withdrawal_credentials", validator_index=KEY[0], pubkey="pubkey"
        )

        assert_same_rows(world.withdrawal_credentials, expected)
        most = world.withdrawal_credentials.group_by("credentials").len()["len"].max()
        assert world.meta["validators"] // 3 < most

    def test_ether(self, world):
        """An address has at least the withdrawals and block rewards paid to it, to the wei."""
        paid = Counter()
        for credentials, gwei in world.validators.select(
            "withdrawal_credentials", "total_withdrawals_gwei"
        ).rows():
            if credentials[:4] != "0x00":
                paid["0x" + credentials[-40:]] += gwei * ETH
        for relayed, own, wei in world.execution_blocks.select(
            "relay_producer_fee_recipient", "fee_recipient", "producer_reward_wei"
        ).rows():
            paid[relayed or own] += int(wei)
        ether = world.address_balances.filter(pl.col("token").is_null())
        balances = dict(ether.select("address", "balance_wei").rows())

        assert ether["symbol"].null_count() == ether.height
        assert set(paid) <= set(balances)
        for address, wei in paid.items():
            own = int(balances[address]) - wei
            assert 0 <= own < 5 * WEI

    def test_tokens(self, world):
        """The tokens of an address are its token balances; some have many, some none."""
        tokens = world.address_balances.filter(pl.col("token").is_not_null())
        held = world.address_balances.group_by("address").agg(pl.col("token").count())

        assert tokens.drop("balance_wei").equals(world.token_balances)
        places = tokens["balance"].str.split(".").list.slice(1).list.join("").str.len_chars()
        assert tokens["decimals"].equals(places.cast(pl.Int64), check_names=False)
        assert tokens["symbol"].str.starts_with("sim").all()
        assert tokens["balance"].str.contains(r"^\d+(\.\d{1,16})?$").all()
        assert 400 < held["token"].max()
        assert 0 == held["token"].min()

    def test_names(self, world):
        """Names and addresses resolve to each other; all names are marked as simulated."""
        rows = {row["asked"]: row for row in world.names.to_dicts()}
        names = {lookup for lookup in rows if lookup.endswith(".eth")}

        assert world.names["asked"].is_sorted()
        assert all(name.startswith("sim-") for name in names)
        for name in names:
            assert rows[rows[name]["address"]]["domain"] == rows[name]["domain"]
        assert {True, False} == {rows[name]["domain"] == name for name in names}
        assert "" in set(world.names["domain"])
        first = "0x" + world.deposit_origin.group_by("from_address").len().sort("len")[-1, 0][2:]
        assert rows["sim-0000.eth"]["address"] == first

    def test_gas_fees(self, world):
        """Faster prices are higher, and none is below the newest block's base fee."""
        (row,) = world.gas_fees.to_dicts()
        base = world.real["exec_base_fee_per_gas_wei"][-1]
        fees = [row[f"{name}_wei"] for name in ("slow", "standard", "fast", "rapid")]

        assert sorted(fees) == fees
        assert base < fees[0]
        (state,) = world.latest_state.to_dicts()
        prices = json.loads(state["main_currency_ticker_prices"])
        assert (state["time"], prices["USD"]["roundPrice"]) == (row["time"], row["price_usd"])


class TestPool:
    def test_minipools(self, world):
        """A minipool is the contract to which its validator pays; each has one."""
        rows = world.pool_validators

        assert rows.height == rows["minipool_address"].n_unique()
        assert rows.height > rows["node_address"].n_unique() > 1
        for row in rows.to_dicts():
            assert world.find_address(row["validator_index"]) == row["minipool_address"]
            whole = row["node_deposit_balance_wei"] + row["user_deposit_balance_wei"]
            assert whole == 32 * WEI
        staking = rows.filter(pl.col("minipool_status") == "Staking").join(world.validators, KEY[0])
        assert staking["status"].str.contains("_o(n|ff)line$").all()
        slashed = rows.join(world.validators, KEY[0])
        assert_empty(slashed.filter(pl.col("slashed") != (pl.col("penalty_count") > 0)))

    def test_node_addresses(self, world):
        """A node receives its block rewards at its address."""
        blocks = world.execution_blocks.join(
            world.pool_validators, left_on="proposer_index", right_on=KEY[0]
        )
        paid = pl.coalesce("relay_producer_fee_recipient", "fee_recipient")

        assert blocks.height
        assert_empty(blocks.filter(paid != pl.col("node_address")))

    def test_stats(self, world):
        """The pool's statistics are sums over its minipools and nodes."""
        (row,) = world.pool_stats.to_dicts()
        pools = world.pool_validators
        nodes = pools.unique("node_address")

        assert (pools.height, nodes.height) == (row["minipool_count"], row["node_count"])
        staking = pools.filter(pl.col("minipool_status") == "Staking").height
        assert 32 * WEI * staking == row["total_eth_staking_wei"] < row["total_eth_balance_wei"]
        stake = nodes["effective_rpl_stake_base_units"].sum()
        assert stake == row["effective_rpl_staked_base_units"]
        apr = world.yield_index["apr"][-1]
        assert apr * (1 - row["current_node_fee"]) == pytest.approx(row["reth_apr"])
        supply = float(row["reth_supply_base_units"]) * row["reth_exchange_rate"]
        assert supply == pytest.approx(float(row["total_eth_balance_wei"]))


def test_ether_balances_below_and_above_2_to_the_63(chain, monkeypatch):
    """E9: the first addresses of a small chain have less wei than 2**63, later ones more."""
    rows = chain.scan("validators").head(2).collect()
    withdrawn = pl.Series("total_withdrawals_gwei", [0, 2**63 // 10**9 + 1])
    data = SimpleNamespace(
        seed=7,
        validators=rows.with_columns(
            withdrawn, withdrawal_credentials=pl.Series([f"0x01{n:062x}" for n in (1, 2)])
        ),
    )
    monkeypatch.setattr(accounts.identities, "make_builders", lambda _seed: [])
    monkeypatch.setattr(accounts, "hash_number", lambda *_: 1)
    produced = chain.scan("execution_blocks").limit(0).collect()

    balances = accounts._build_ether_balances(data, {}, produced)

    assert [1, (2**63 // 10**9 + 1) * 10**9 + 1] == [*map(int, balances["balance_wei"])]
