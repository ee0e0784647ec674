"""Test simulated attestations: duties, aggregates, votes, rewards and penalties."""

from collections import Counter

import numpy as np
import polars as pl
import pytest

from beaconframes.simulator.duties import draw_attestations

from ..support.simulated_chain import ETH, KEY, assert_empty, assert_same_rows


def test_a_source_vote_is_timely_for_five_slots():
    """The integer root of 32; with a block in every sixth slot, delays are 1 to 6."""
    count = 640
    has_block = np.arange(64) % 6 == 0

    drawn = draw_attestations(1, 7, np.arange(count), np.full(count, fill_value=True), has_block)

    delay = drawn.inclusion_slots - drawn.slots
    assert {1, 2, 3, 4, 5, 6} <= set(delay.tolist())
    assert (delay <= 5).tolist() == drawn.timely_source.tolist()


@pytest.mark.parametrize(("flag", "weight"), [("source", 14), ("target", 26), ("head", 14)])
def test_a_flag_earns_by_participation_or_costs_its_weight(simulated, flag, weight):
    """A flag earns base x weight x participation / 64, or costs base x weight / 64."""
    reward = pl.col(f"attestation_{flag}_reward_gwei")
    timely = reward > 0
    rows = simulated.rows.with_columns(
        participating=pl.col("increments").filter(timely).sum().over("epoch")
    )
    earned = pl.col("base") * weight * pl.col("participating") // (pl.col("total") // ETH * 64)
    assert_empty(rows.filter(timely & (reward != earned)))
    assert_empty(rows.filter(timely & (pl.col("slashed") & (pl.col("since") <= pl.col("epoch")))))
    if flag != "head":
        penalty = pl.col(f"attestation_{flag}_penalty_gwei")
        expected = pl.when(timely).then(0).otherwise(pl.col("base") * weight // 64)
        assert_empty(rows.filter(penalty != expected))
    is_slashed = (pl.col("since") <= pl.col("epoch")).fill_null(value=False)
    name = f"attestation_{flag}_missed_gwei"
    missed = simulated.missed_reward_events.filter(pl.col(name) > 0)
    expected = rows.filter("active", ~timely, ~is_slashed).select(*KEY, earned.alias(name))
    assert expected.sort(KEY).equals(missed.select(*KEY, name).sort(KEY))
    assert expected.height > 100


def test_a_timely_head_vote_has_a_timely_target(simulated):
    """A timely head vote has the correct target; there is no inactivity leak."""
    head, target = (pl.col(f"attestation_{flag}_reward_gwei") > 0 for flag in ("head", "target"))
    assert_empty(simulated.rows.filter(head & ~target))
    assert 0 == simulated.rows["finality_delay_penalty_gwei"].sum()


def test_participation_is_the_stake_of_timely_target_votes(simulated):
    """Eligible is the stake of active validators, voted that of timely target voters."""
    voted = (
        simulated.rows.filter(pl.col("attestation_target_reward_gwei") > 0)
        .group_by("epoch")
        .agg(voted=pl.col("effective_balance_gwei").sum())
    )
    eligible = simulated.states.select("epoch", "total").unique()
    rows = simulated.epochs.join(eligible, "epoch").join(voted, "epoch")

    assert simulated.meta["epochs"] - 2 == rows.height
    assert_empty(rows.filter(pl.col("eligible_ether_gwei") != pl.col("total")))
    assert_empty(rows.filter(pl.col("voted_ether_gwei") != pl.col("voted")))
    for rate, some, whole in rows.select("global_participation_rate", "voted", "total").rows():
        assert some / whole == rate
        assert rate > 2 / 3


def test_proposers_earn_an_eighth_of_the_included_votes(simulated):
    """Proposers of canonical blocks earn an eighth of the rewards of included votes."""
    reward = pl.col("proposer_attestation_inclusion_reward_gwei")
    blocks = simulated.produced.select("epoch", validator_index="proposer_index").unique()
    assert_empty(simulated.rows.filter(reward > 0).join(blocks, KEY, how="anti"))
    weights = sum(
        (pl.col(f"attestation_{flag}_reward_gwei") > 0) * weight
        for flag, weight in (("source", 14), ("target", 26), ("head", 14))
    )
    paid, set_ = simulated.rows.select(
        reward.sum(), (pl.col("base") * weights).sum().alias("flags")
    ).row(0)
    # (64 - 8) x 64 / 8 = 448. Rounded down per attestation; the votes of the border epochs and
    # of validators slashed meanwhile make a small difference.
    assert 0.99 < paid / (set_ / 448) < 1.003


def test_each_active_validator_has_one_duty_per_epoch(simulated):
    """Each active validator has one duty in the running epoch and the hundred before."""
    far = pl.lit(2**62)
    epochs = pl.DataFrame({"epoch": range(simulated.latest - 100, simulated.latest + 1)})
    active = simulated.validators.join(epochs, how="cross").filter(
        pl.col("activation_epoch") <= pl.col("epoch"),
        pl.col("epoch") < pl.col("exit_epoch").fill_null(far),
    )
    expected = active.select(KEY).sort(KEY)

    assert expected.equals(simulated.attestations.select(KEY))
    assert_empty(simulated.attestations.filter(pl.col("attester_slot") // 32 != pl.col("epoch")))


def test_duties_are_included_by_the_end_of_the_next_epoch(simulated):
    """Included in a canonical block after the attested slot, by the end of the next epoch."""
    included = pl.col("inclusion_slot").is_not_null()
    rows = simulated.attestations

    assert_empty(rows.filter(included != (pl.col("status") == "included")))
    assert_empty(rows.filter(pl.col("inclusion_slot") <= pl.col("attester_slot")))
    assert_empty(rows.filter(pl.col("inclusion_slot") // 32 > pl.col("epoch") + 1))
    assert_empty(
        rows.filter(included).join(
            simulated.produced, left_on="inclusion_slot", right_on="slot", how="anti"
        )
    )
    assert 0.9 < rows.filter(pl.col("epoch") < simulated.latest - 1).select(included.mean()).item()


def test_timely_duties_earn_and_missed_ones_do_not(simulated):
    """A missed duty earns nothing; a timely one does; a timely head is one slot later."""
    slashed = simulated.slashing_events.select(KEY[0], since=pl.col("slot") // 32)
    rows = simulated.final_attestations.join(simulated.income_history, KEY).join(
        slashed, KEY[0], how="left"
    )
    assert simulated.final_attestations.height == rows.height
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


def test_missed_attestation_events_are_the_missed_duties(simulated):
    """The missed attestation events are the missed duties, and cost the source vote."""
    since = simulated.latest - 100
    recent = simulated.missed_attestation_events.filter(pl.col("epoch") >= since)
    missed = simulated.final_attestations.filter(pl.col("status") == "missed")

    assert_same_rows(recent.select(KEY), missed.select(KEY))
    paid = simulated.missed_attestation_events.join(simulated.income_history, KEY, how="left")
    assert_empty(paid.filter(pl.col("attestation_source_penalty_gwei").fill_null(0) == 0))


def test_efficiency_is_2_minus_the_mean_of_inverse_delays(simulated):
    """2 minus the mean of 1 / (inclusion - slot), 0 when missed, over the last 100 epochs."""
    over = simulated.attestations.filter(pl.col("epoch") < simulated.latest)
    worth = (1 / (pl.col("inclusion_slot") - pl.col("attester_slot"))).fill_null(0)
    expected = dict(over.group_by("validator_index").agg(2 - worth.mean()).rows())
    found = dict(simulated.attestation_efficiency.rows())

    assert expected == pytest.approx(found, abs=1e-12)
    assert 1 <= min(found.values()) <= max(found.values()) <= 2


def test_each_duty_is_in_one_aggregate(simulated):
    """Each attester is in one aggregate, in the block and for the slot of its duty."""
    since = (simulated.latest - 99) * 32
    names = {"validators": "validator_index", "slot": "attester_slot"}
    found = simulated.slot_attestations.rename(names).explode(
        "validator_index", empty_as_null=False
    )
    expected = simulated.attestations.filter(pl.col("inclusion_slot") >= since)

    assert {0} == set(simulated.slot_attestations["committee_index"])
    assert_same_rows(
        found.select("validator_index", "attester_slot", "block_slot"),
        expected.select("validator_index", "attester_slot", "inclusion_slot"),
    )


def test_aggregation_bits_select_the_validators(simulated):
    """Bit i is the i-th validator with a duty in the slot; the highest bit ends the list."""
    members = dict(
        simulated.attestations.sort("attester_slot", "validator_index")
        .group_by("attester_slot", maintain_order=True)
        .agg("validator_index")
        .rows()
    )
    rows = simulated.slot_attestations.select("slot", "validators", "aggregation_bits")
    for slot, validators, bits in rows.sample(fraction=0.2, seed=1).rows():
        number = int.from_bytes(bytes.fromhex(bits[2:]), "little")
        size = number.bit_length() - 1
        assert len(members[slot]) == size
        assert validators == [members[slot][i] for i in range(size) if number >> i & 1]


def test_votes_name_canonical_blocks(simulated):
    """Votes name canonical blocks; most name the newest, and their epoch's first."""
    slots = dict(simulated.canonical.select("block_root", "slot").rows())
    by_slot = simulated.canonical["slot"].to_numpy()

    def newest(slot):
        return int(by_slot[np.searchsorted(by_slot, slot, side="right") - 1])

    right = Counter()
    for row in simulated.slot_attestations.to_dicts():
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


def test_recent_blocks_count_the_votes_for_them(simulated):
    """Blocks of the last 100 epochs have the votes of included aggregates; others have none."""
    votes = simulated.slot_attestations.group_by("beacon_block_root").agg(
        named=pl.col("validators").list.len().sum()
    )
    latest = simulated.blocks["epoch"].max()
    counted = pl.col("epoch") > latest - 100
    real = pl.col("status").is_in(["proposed", "orphaned"])
    blocks = simulated.blocks.filter(counted, real).join(
        votes, left_on="block_root", right_on="beacon_block_root", how="left"
    )

    assert blocks["votes"].to_list() == blocks["named"].fill_null(0).to_list()
    assert blocks.filter(status="proposed")["votes"].mean() > 1
    assert 0 == blocks.filter(status="orphaned")["votes"].sum()
    rest = simulated.blocks.filter(~counted | ~real)
    assert rest.height == rest["votes"].null_count()


def test_wrong_votes_earn_nothing(simulated):
    """A wrong target earns no target reward, and a wrong head no head reward."""
    slots = dict(simulated.canonical.select("block_root", "slot").rows())
    by_slot = simulated.canonical["slot"].to_list()
    newest = pl.DataFrame({"slot": by_slot, "newest": by_slot})
    rows = (
        simulated.slot_attestations.filter(pl.col("target_epoch") <= simulated.finalized)
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
        .join(simulated.income_history, KEY)
    )
    for kind, wrong in (
        ("target", pl.col("target") != pl.col("goal")),
        ("head", pl.col("head") != pl.col("newest")),
    ):
        some = rows.filter(wrong)
        assert some.height
        assert 0 == some[f"attestation_{kind}_reward_gwei"].sum()
