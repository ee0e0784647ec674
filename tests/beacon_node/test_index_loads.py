"""Loads from an index without an execution node: exact where the chain says it, otherwise null."""

from __future__ import annotations

import json
import lzma

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.dataset import Dataset
from beaconframes.errors import TableNotInDataset

from ..support.beacon_node_stub import FOLDER, BeaconNodeStub
from .conftest import UNTIL

ALL = range(16)
ADDRESS = "0x" + "ab" * 20
V1 = {
    "attestation_efficiency": (ALL,),
    "attestations": (ALL,),
    "attester_slashings": (range(80, 96),),
    "balance_history": (ALL,),
    "bls_changes": (ALL,),
    "epoch_slots": (),
    "epochs": (),
    "graffiti_wall": (),
    "income_history": (ALL,),
    "latest_state": (),
    "performance": (ALL,),
    "proposal_luck": (ALL,),
    "proposals": (ALL,),
    "proposer_slashings": (range(80, 96),),
    "slot_attestations": ([90],),
    "slot_deposits": ([90],),
    "slot_withdrawals": ([90],),
    "slots": ([90],),
    "sync_committees": (range(2),),
    "validator_queue": (),
    "validator_withdrawals": (ALL,),
    "validators": (ALL,),
    "voluntary_exits": (range(40, 48),),
    "withdrawal_credentials": (["0x010000000000000000000000" + "ab" * 20],),
}
V2 = {
    "apy_roi": (ALL,),
    "attestation_slots": (ALL,),
    "balances": (ALL,),
    "config": (),
    "deposit_slots": (ALL,),
    "metadata": (ALL,),
    "network_performance": (),
    "performance": (ALL,),
    "performance_aggregate": (ALL,),
    "proposal_slots": (ALL,),
    "queues": (),
    "rewards": (ALL,),
    "rewards_aggregate": (ALL,),
    "slot": ([90],),
    "slot_attestation_duties": ([90],),
    "slot_deposits": ([90],),
    "slot_sync_committee_duties": ([90],),
    "slot_withdrawals": ([90],),
    "state": (),
    "sync_committee": (),
    "sync_committee_periods": (ALL,),
    "sync_committee_validators": (),
    "upcoming_duty_slots": (ALL,),
    "validator_queues": (ALL,),
    "validators": (ALL,),
    "withdrawal_slots": (ALL,),
}
REFUSED = {
    "address_balances": (bf.load_address_balances, [ADDRESS], "It describes the present"),
    "deposit_origin": (bf.load_deposit_origin, ADDRESS, "execution node"),
    "deposits": (bf.load_deposits, ALL, "execution node"),
    "entity_names": (bf.v2.load_entities, None, "No node has it"),
    "execution_blocks": (bf.load_execution_blocks, [1], "execution node"),
    "execution_performance": (bf.load_execution_performance, ALL, "execution node"),
    "gas_fees": (bf.load_gas_fees, None, "It describes the present"),
    "machine_metrics": (bf.v2.load_machine_metrics, None, "No node has it"),
    "pool_stats": (bf.load_pool_stats, None, "No node has it"),
    "token_balances": (bf.load_token_balances, ADDRESS, "No node has it"),
    "yield_index": (bf.load_yield_index, None, "Index the chain with an execution node too"),
}


@pytest.mark.parametrize(("package", "loads"), [(bf, V1), (bf.v2, V2)], ids=["v1", "v2"])
def test_loaders_answer_from_an_index(electra, package, loads):
    for name, arguments in loads.items():
        frame = getattr(package, f"load_{name}")(*arguments)
        assert frame.columns, name


@pytest.mark.parametrize("table", REFUSED)
def test_what_a_beacon_node_does_not_have_is_refused_by_name(electra, table):
    load, subject, hint = REFUSED[table]
    with pytest.raises(TableNotInDataset, match=f"this dataset has no {table}") as refused:
        load(*([] if subject is None else [subject]))
    assert hint in refused.value.hint


@pytest.mark.parametrize("load", [bf.load_yield_index, bf.v2.load_yield_index])
@pytest.mark.parametrize("wanted", [{"since": 0}, {"since": 0, "until": 0}])
def test_days_of_the_yield_index_need_an_execution_node(electra, load, wanted):
    """However the days are selected, the error states why there is no row of any day."""
    with pytest.raises(TableNotInDataset, match="this dataset has no yield_index") as refused:
        load(**wanted)
    assert "execution node" in refused.value.hint


def test_rewards_of_proposers_are_unknown_and_all_others_exact(electra):
    """What a block paid its proposer is null; who proposed no block received nothing."""
    rewards = bf.v2.load_rewards(range(70), since=8, until=9)
    income = bf.load_income_history(range(70), since=8, until=9)
    blocks = bf.load_epoch_slots(since=8, until=9)
    key = ["validator_index", "epoch"]
    proposed = blocks.filter(status="proposed").select("epoch", validator_index="proposer_index")
    missed = blocks.filter(status="missed").select("epoch", validator_index="proposer_index")
    consensus = pl.sum_horizontal(pl.col("^.*_reward_gwei$")) - pl.sum_horizontal(
        pl.col("^.*_penalty_gwei$")
    )
    rows = rewards.join(income.select(*key, net=consensus), key)

    assert rows.height == income.height > 100
    unknown = rows.join(proposed, key, how="semi")
    assert unknown.height > 5
    names = ["total_wei", "total_reward_wei", "proposal_total_wei"]
    assert unknown.select(*names, "proposal_execution_layer_reward_wei").null_count().row(0) == (
        (unknown.height,) * 4
    )
    known = rows.join(proposed, key, how="anti")
    assert known["total_wei"].to_list() == [net * 10**9 for net in known["net"]]
    assert known["proposal_execution_layer_reward_wei"].sum() == 0
    lost = rows.join(missed, key, how="semi")
    assert lost["proposal_missed_el_reward_wei"].null_count() == lost.height > 0
    assert (lost["proposal_missed_cl_reward_wei"] > 0).all()
    assert (unknown["attestation_total_wei"] + unknown["attestation_head_missed_wei"] > 0).any()


def test_sums_with_an_unknown_part_are_null(electra):
    total = bf.v2.load_rewards_aggregate(range(70))
    yields = bf.v2.load_apy_roi(range(70))

    assert total["total_wei"].to_list() == [None] == total["proposal_total_wei"].to_list()
    assert total["attestation_total_wei"][0] > 0
    assert yields["execution_roi"].to_list() == [None] == yields["apy"].to_list()
    assert yields["consensus_roi"][0] > 0


@pytest.mark.more
@pytest.mark.parametrize("has_all_proposers", [True, False])
def test_rewards_of_missed_blocks_need_the_income_of_all_proposers(
    electra, tmp_path, has_all_proposers
):
    """Validator 3 misses a block in epoch 6: without the others' income, its reward is null."""
    blocks = bf.load_epoch_slots(since=6, until=6)
    proposers = blocks.filter(status="proposed")["proposer_index"].to_list()
    income = bf.load_income_history(range(70), since=6, until=6)
    reward = income.select(pl.sum_horizontal("^proposer_.*_reward_gwei$").sum()).item()
    estimate = reward // len(proposers) * 10**9 if has_all_proposers else None
    chosen = {3, *(proposers if has_all_proposers else proposers[:1])}

    with BeaconNodeStub("electra", head=95) as stub:
        bf.index(stub.url, tmp_path / "index", validators=sorted(chosen), until=7)
    with bf.local(tmp_path / "index"):
        rows = bf.v2.load_rewards(sorted(chosen), since=5, until=7)
        total = bf.v2.load_rewards_aggregate([3])
        yields = bf.v2.load_apy_roi([3])

    name = "proposal_missed_cl_reward_wei"
    assert rows.filter(validator_index=3)[name].to_list() == [0, estimate, 0]
    assert rows.filter(pl.col("validator_index") != 3)[name].unique().to_list() == [0]
    assert total[name].to_list() == [estimate]
    assert yields["consensus_roi_missed"].is_null().to_list() == [not has_all_proposers]
    assert reward > 10**6


def test_missed_rewards_are_those_of_the_recorded_route(electra_folder):
    """The route's ideal rewards are what a timely vote earns; unslashed validators miss them."""
    routes = {}
    recording = (FOLDER / "electra-rewards-derived.jsonl.xz").read_bytes()
    for line in lzma.decompress(recording).splitlines():
        entry = json.loads(line)
        if "/rewards/attestations/" in entry["p"]:
            routes[int(entry["p"].rpartition("/")[2])] = entry["r"]["data"]
    dataset = Dataset.open(electra_folder)
    stored = {
        row[:2]: row[2:]
        for row in dataset.scan("missed_reward_events")
        .select("epoch", "validator_index",
                *(f"attestation_{vote}_missed_gwei" for vote in ("head", "source", "target")))
        .collect().iter_rows()
    }  # fmt: skip
    balances = {
        row[:2]: row[2]
        for row in dataset.scan("balance_history")
        .select("epoch", "validator_index", "effective_balance_gwei")
        .collect()
        .iter_rows()
    }
    cells = 0
    for epoch in range(UNTIL):
        ideal = {int(row["effective_balance"]): row for row in routes[epoch]["ideal_rewards"]}
        for row in routes[epoch]["total_rewards"]:
            index = int(row["validator_index"])
            if index in (15, 16, 60):  # Slashed in epochs 11 and 12.
                continue
            # The transition at the end of the next epoch pays by the balance at that time.
            best = ideal[balances[epoch + 1, index]]
            missed = stored.get((epoch, index), (0, 0, 0))
            for name, amount in zip(("head", "source", "target"), missed, strict=True):
                assert amount == int(best[name]) - max(int(row[name]), 0), (epoch, index, name)
                cells += amount > 0
    assert cells > 100


@pytest.mark.more
def test_missed_attestations_are_counted(electra):
    """Their number is not 0 without tables of events: the attestations are all there."""
    duties = bf.load_attestations(range(70), since=0, until=UNTIL - 1)
    performance = bf.v2.load_performance(range(70), since=0, until=UNTIL - 1)
    slot = duties.filter(status="missed")["attester_slot"][0]
    overview = bf.v2.load_slot([slot])

    missed = duties.filter(status="missed").height
    assert performance["attestations_missed"].sum() == missed
    of_slot = duties.filter(attester_slot=slot, status="missed").height
    assert missed > of_slot == overview["attestation_missed"][0] > 0
    delays = duties.filter(status="included").select(
        pl.col("inclusion_slot") - pl.col("attester_slot") - 1
    )
    included = performance.filter(attestations_included=1)["average_inclusion_delay"]
    assert included.mean() == pytest.approx(delays.to_series().mean())


def test_the_last_duties_of_an_index_have_their_outcome(electra, electra_folder):
    """Its last epoch is final: no duty is pending."""
    duties = bf.load_attestations(range(70), since=UNTIL - 1, until=UNTIL)

    stored = Dataset.open(electra_folder).scan("attestations").filter(pl.col("epoch") >= UNTIL - 1)
    stored = stored.filter(pl.col("validator_index") < 70).sort("validator_index", "epoch")
    assert stored.collect()["status"].to_list() == duties["status"].to_list()
    assert {"included", "missed"} == set(duties["status"])


def test_there_is_one_row_per_deposit(electra_folder):
    """Validator 72 was created by 20 and 12 ETH in one block of the Electra chain."""
    rows = Dataset.open(electra_folder).scan("deposit_events").collect()

    two = rows.filter(validator_index=72)
    assert [20 * 10**9, 12 * 10**9] == two["amount_gwei"].to_list()
    assert two["slot"].n_unique() == 1
    assert rows.select("slot", "validator_index", "deposit_index").is_duplicated().sum() == 0


def test_queue_events_of_requests_are_unknown(electra, electra_folder):
    """Slot 66 requests withdrawals, slot 74 a switch and a consolidation; slot 90 none of them."""
    slots = bf.v2.load_slot([58, 66, 74, 90]).sort("slot")
    withdrawals, consolidations = (
        slots[f"queued_{name}_count"].to_list() for name in ("manual_withdrawals", "consolidations")
    )

    assert withdrawals == [0, None, 0, 0]  # Those of slot 58 are full exits.
    assert consolidations == [0, 0, None, 0]
    deposits = Dataset.open(electra_folder).scan("deposit_requests").collect()
    queued = bf.v2.load_slot(deposits["block_slot"].unique().to_list())
    assert queued["queued_deposits_count"].sum() == deposits.height > 0
    assert queued["queued_deposits_wei"].sum() == deposits["amount_gwei"].sum() * 10**9


def test_paid_requests_are_unknown_after_the_first_request(electra):
    """Slot 60 has the first request of an amount. Slot 79 has no block, and so no withdrawals."""
    slots = bf.v2.load_slot([56, 60, 61, 78, 79]).sort("slot")

    assert [0, 0, None, None, 0] == slots["processed_manual_withdrawals_count"].to_list()
    assert [4, 4, None, None, 0] == slots["processed_sweeps_count"].to_list()


def test_blob_commitments_are_those_of_the_bodies(electra):
    """Counted by hand in the recorded bodies; slot 14 has no block."""
    slots = bf.v2.load_slot([0, 1, 2, 10, 14, 15]).sort("slot")
    assert slots["blob_commitments_count"].to_list() == [0, 3, 0, 1, 0, 2]


@pytest.mark.more
def test_votes_are_counted_until_two_epochs_later():
    """Slot 110 is in epoch 13; epoch 15 includes a vote for its block, from a slot of epoch 14."""
    with BeaconNodeStub("electra") as stub, bf.node(stub.url, store=False):
        aggregates = bf.load_slot_attestations(range(111, 128))
        block = bf.load_slots([110])

    votes = aggregates.filter(pl.col("beacon_block_root").is_in(block["block_root"].implode()))
    counts = [
        rows.select("slot", "validators").explode("validators").unique().height
        for rows in (votes, votes.filter(pl.col("block_slot") < 120))
    ]
    assert counts == [31, 30]
    assert block["votes"].to_list() == [31]


@pytest.mark.parametrize(
    ("table", "load"),
    [
        ("validator_stats", lambda: bf.load_validator_stats([1], since=0)),
        ("leaderboard", bf.load_leaderboard),
    ],
)
def test_tables_of_days_say_that_the_chain_is_short(electra, table, load):
    reason = f"this dataset has no {table}, because it has no whole day of the chain"
    with pytest.raises(TableNotInDataset, match=reason) as refused:
        load()
    assert refused.value.hint.startswith("Add epochs until a whole day")


def test_pixels_of_an_index_are_those_of_its_blocks(electra):
    pixels = bf.load_graffiti_wall(since=0)
    blocks = bf.load_epoch_slots(since=0)
    columns = ["slot", "x", "y", "color", "validator_index"]
    expected = bf.wall.from_blocks(blocks).select(columns).sort(columns)
    assert expected.height > 0
    assert expected.equals(pixels.select(columns).sort(columns))


@pytest.mark.more
def test_an_open_index_shows_the_epochs_that_are_added(tmp_path):
    """All kinds of tables are those of the last commit, without opening the index again."""
    folder = tmp_path / "index"
    rows = {
        "income": lambda: bf.load_income_history([1], since=0),
        "latest": lambda: bf.load_balance_history([1], since=-1),
        "derived": bf.load_epochs,
        "blocks": lambda: bf.load_epoch_slots(since=0),
        "v2": lambda: bf.v2.load_balances([1]),
    }
    with BeaconNodeStub("capella", head=47) as stub:
        bf.index(stub.url, folder, until=0)
        with bf.open(folder):
            before = {name: load()["epoch"].max() for name, load in rows.items()}
            bf.index(stub.url, folder, until=1)
            after = {name: load()["epoch"].max() for name, load in rows.items()}

    assert before == dict.fromkeys(rows, 0)
    assert after == dict.fromkeys(rows, 1)
