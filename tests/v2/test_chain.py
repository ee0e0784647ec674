"""Slots, blocks, periods, queues and machines of V2, from the local explorer."""

from __future__ import annotations

import json

import httpx
import polars as pl
import polars.selectors as cs
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors
from beaconframes.answers.v2.duties import count_attestations

from ..support.replay import replaying

ETHEREUM = "/api/v2/ethereum"


@pytest.fixture
def blocks(chain):
    """The beacon blocks of the dataset."""
    return chain.scan("blocks").collect()


def post(explorer, path, body):
    """Return the status and the body of a plain request."""
    reply = httpx.post(f"{explorer.url}{path}", json=body)
    return reply.status_code, reply.json()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/block", {}),
        ("/block", {"block": 5}),
        ("/block", {"block": {"number": -1}}),
        ("/block", {"block": {"number": "5"}}),
        ("/block", {"block": {"view": "next"}}),
        ("/block", {"block": {"number": 5, "view": "latest"}}),
        ("/block/rewards", {"block": {"root": "0x" + "ab" * 32}}),
        ("/sync-committee", {}),
        ("/sync-committee", {"sync_committee_period": {"view": "finalized"}}),
        ("/slot/attestation-duties", {"slot": {"root": "0x" + "ab" * 32}}),
        ("/slot/sync-committee-duties", {"slot": {"view": "newest"}}),
        ("/performance-aggregate", {"range": {"evaluation_window": "1d"}}),
    ],
)
def test_a_request_without_a_valid_place_is_refused(path, body, explorer):
    """A request must select by exactly one of the documented ways."""
    bad = {"error": "Bad request. Please check your input and try again."}

    assert (400, bad) == post(explorer, ETHEREUM + path, {"chain": "mainnet", **body})


@pytest.mark.parametrize("load", [bf.v2.load_block, bf.v2.load_block_rewards])
def test_a_block_by_a_view_is_the_newest_or_the_newest_final_one(load, explorer):
    """Equal to the dataset; a block that does not exist is missing."""
    known = explorer.service.dataset.scan("execution_blocks").collect()
    final = known.filter("finalized")["block_number"].max()
    newest = known["block_number"].max()

    assert [final, newest] == load(["latest", "finalized"])["block_number"].to_list()
    with pytest.warns(bf.MissingRows, match=f"block_number {newest + 1}"):
        assert [3] == load([3, newest + 1])["block_number"].to_list()
    with pytest.raises(errors.MissingRows):
        load(newest + 1, strict=True)


def test_every_slot_has_a_row(blocks, explorer):
    """Proposed, missed and orphaned slots have one row each, with the proposer."""
    slots = [blocks.filter(status=s)["slot"][5] for s in ("proposed", "missed", "orphaned")]
    expected = blocks.filter(pl.col("slot").is_in(slots)).sort("slot")

    found = bf.v2.load_slot(slots)

    assert expected["slot"].to_list() == found["slot"].to_list()
    assert expected["proposer_index"].to_list() == found["proposer_index"].to_list()
    assert {"success", "missed", "orphaned"} == set(found["status"])
    missed = found.row(by_predicate=pl.col("status") == "missed", named=True)
    assert None is missed["block_root"]
    assert 0 == missed["processed_sweeps_wei"]
    assert (0, 512, 512) == tuple(missed[f"sync_{n}"] for n in ("successful", "missed", "assigned"))


def test_slots_of_every_epoch_count_their_attestations(explorer):
    """E13: those of an epoch add up to its active validators; old slots have counts too."""
    scan, final = explorer.service.dataset.scan, explorer.service.head.finalized_epoch
    counts = count_attestations(explorer.service.views.current()).with_columns(
        epoch=pl.col("slot") // 32
    )
    by_epoch = counts.group_by("epoch").agg(cs.starts_with("attestation_").sum()).collect()

    whole = scan("epochs").filter(pl.col("epoch") <= final).join(by_epoch.lazy(), on="epoch")
    active, assigned = whole.select("validators_count", "attestation_assigned").collect()
    assert active.to_list() == assigned.to_list()
    assert final + 1 == len(active)
    missed = scan("missed_attestation_events").filter(pl.col("epoch") == 40).collect()
    assert [missed.height] == by_epoch.filter(epoch=40)["attestation_missed"].to_list()
    votes = (
        scan("attestations")
        .group_by(slot="attester_slot")
        .agg(
            attestation_assigned=pl.len(),
            attestation_missed=(pl.col("status") == "missed").sum(),
            attestation_successful=(pl.col("status") == "included").sum(),
        )
    )
    recent = counts.join(votes, on="slot", how="semi").drop("epoch")
    assert votes.sort("slot").collect().rows() == recent.sort("slot").collect().rows()
    old = bf.v2.load_slot(40 * 32)
    expected = counts.filter(pl.col("slot") == 40 * 32).collect()
    assert expected["attestation_missed"].to_list() == old["attestation_missed"].to_list()


def test_old_slots_list_the_attestation_duties_that_they_count(chain, explorer):
    """E11, E13: which are not stored, but drawn again; missed and late ones are stored."""
    late = chain.scan("late_attestation_events").filter(pl.col("epoch") == 40).collect()
    slot = late["slot"][0]
    missed = chain.scan("missed_attestation_events").filter(pl.col("slot") == slot).collect()

    found = bf.v2.load_slot_attestation_duties(slot)
    counts = bf.v2.load_slot(slot).select("attestation_assigned", "attestation_missed").row(0)

    assert counts == (found.height, found.filter(status="missed").height)
    assert sorted(missed["validator_index"]) == (
        found.filter(status="missed")["validator_index"].to_list()
    )
    is_late = found.filter(pl.col("inclusion_delay") > 0)
    assert sorted(late.filter(slot=slot).select("validator_index", "inclusion_slot").rows()) == (
        is_late.select("validator_index", "inclusion_slot").rows()
    )
    assert 0 == found["reward_total_wei"].null_count()


def test_inclusion_delays_count_from_the_first_possible_slot(explorer):
    """The next slot is 0, as the service counts; slot 1295 has no block."""
    duties = bf.v2.load_slot_attestation_duties([1280, 1294])
    delays = duties.group_by(
        "slot", "inclusion_slot", "inclusion_delay", "inclusion_delay_without_missed_block"
    ).len()

    assert [(1280, 1281, 0, 0), (1280, 1282, 1, 1), (1294, 1296, 1, 0)] == sorted(
        delays.drop_nulls().drop("len").iter_rows()
    )


def test_a_root_selects_one_of_two_blocks_in_a_slot(blocks, explorer):
    """The number selects the canonical block."""
    counts = blocks.group_by("slot").len().filter(pl.col("len") > 1)
    two = blocks.filter(pl.col("slot") == counts["slot"].min())
    proposed, orphaned = (
        two.filter(status=status)["block_root"].item() for status in ("proposed", "orphaned")
    )

    assert [proposed] == bf.v2.load_slot(two["slot"][0])["block_root"].to_list()
    assert {proposed, orphaned} == set(bf.v2.load_slot([proposed, orphaned])["block_root"])


@pytest.mark.more
def test_a_slot_counts_its_items(blocks, explorer):
    """Deposits, withdrawals and credential changes equal those of their own loaders."""
    deposits = bf.load_slot_deposits(37)
    change = explorer.service.dataset.scan("bls_changes").collect()["slot"][0]
    paid = bf.load_slot_withdrawals(37)

    found = bf.v2.load_slot([37, change])

    of_37 = found.row(by_predicate=pl.col("slot") == 37, named=True)
    assert deposits.height == of_37["queued_deposits_count"]
    assert bf.to_wei(deposits)["amount_wei"].sum() == of_37["processed_deposits_wei"]
    assert paid.height == of_37["processed_sweeps_count"]
    assert bf.to_wei(paid)["amount_wei"].sum() == of_37["processed_sweeps_wei"]
    assert found.filter(slot=change)["bls_changes_count"].item() > 0


@pytest.mark.more
def test_sync_committee_rewards_of_slots_equal_the_income_of_their_epoch(explorer):
    """Exact to the wei, for members with one and with several seats."""
    duties = bf.v2.load_slot_sync_committee_duties(range(300 * 32, 301 * 32), range(60))
    income = bf.to_wei(bf.load_income_history(range(60), since=300, until=300))
    rewards = pl.col("sync_committee_reward_wei", "sync_committee_penalty_wei")

    expected = income.filter(pl.any_horizontal(rewards > 0)).select("validator_index", rewards)
    found = (
        duties.group_by("validator_index")
        .agg(
            sync_committee_reward_wei=pl.col("reward_wei").sum(),
            sync_committee_penalty_wei=pl.col("penalty_wei").sum(),
        )
        .sort("validator_index")
        .cast(dict(expected.schema))
    )
    assert_frame_equal(expected, found)
    seats = bf.load_sync_committees(300 // 256).filter(pl.col("validator_index") < 60)
    assert set(seats["validator_index"]) == set(duties["validator_index"])
    assert seats["validator_index"].n_unique() < seats.height
    assert (duties["total_wei"] == duties["reward_wei"] - duties["penalty_wei"]).all()


def test_the_header_of_genesis_has_the_first_validator_as_proposer(explorer, chain):
    """Its fields are zero in the consensus specification."""
    key = chain.scan("validators").filter(validator_index=0).collect()["pubkey"].item()
    found = bf.v2.load_slot(0)
    assert [(0, key)] == found.select("proposer_index", "proposer_pubkey").rows()


def test_sync_committee_duties_are_of_finalized_slots(explorer):
    """The latest slot has no rows."""
    assert 0 == bf.v2.load_slot_sync_committee_duties("latest", 1).height
    assert 0 < bf.v2.load_slot_sync_committee_duties("finalized").height


@pytest.mark.more
def test_attestation_rewards_of_slots_equal_the_income_of_their_epoch(explorer):
    """Every validator votes once per epoch; slots that are not final are refused."""
    head = explorer.service.head
    epoch = head.finalized_epoch - 3
    members = range(100, 140)
    slots = range(epoch * 32, epoch * 32 + 32)
    duties = bf.v2.load_slot_attestation_duties(slots, members).sort("validator_index")
    income = bf.to_wei(bf.load_income_history(members, since=epoch, until=epoch))

    assert list(members) == duties["validator_index"].to_list()
    totals = income.select(
        pl.sum_horizontal("^attestation_.*_reward_wei$")
        - pl.sum_horizontal("^attestation_.*_penalty_wei$", "finality_delay_penalty_wei")
    )
    assert totals.to_series().to_list() == duties["reward_total_wei"].to_list()
    delay = duties["inclusion_slot"] - duties["slot"] - 1
    assert delay.to_list() == duties["inclusion_delay"].to_list()
    late = duties.filter(pl.col("inclusion_delay") > 0)
    assert (late["inclusion_delay_without_missed_block"] <= late["inclusion_delay"]).all()
    with pytest.raises(errors.UsageError, match="is not final yet"):
        bf.v2.load_slot_attestation_duties(head.slot - 3)


def test_a_period_has_its_epochs(explorer):
    """The current and the next period load; later ones have no committee."""
    found = bf.v2.load_sync_committee([0, "latest", "next"])

    assert [(0, 0, 255), (1, 256, 511), (2, 512, 767)] == found.select(
        "period", "start_epoch", "end_epoch"
    ).rows()
    assert ["finalized", "not_finalized", "not_finalized"] == found["finality"].to_list()
    assert explorer.service.chain.time_of("epoch", 256) == found["start_time"][1]
    with pytest.warns(bf.MissingRows, match="period 9"):
        assert 0 == bf.v2.load_sync_committee(9).height


def test_the_network_is_all_validators_together(blocks, explorer):
    """Counts of blocks equal the chain; the score is that of the sums."""
    whole = bf.v2.load_network_performance("all_time").row(0, named=True)
    final = blocks.filter(
        pl.col("epoch") <= explorer.service.head.finalized_epoch,
        pl.col("proposer_index").is_not_null(),
    )

    assert final.filter(status="proposed").height == whole["proposals_successful"]
    assert final["slot"].n_unique() == whole["proposals_assigned"]
    assert whole["attestations_assigned"] == (
        whole["attestations_included"] + whole["attestations_missed"]
    )
    parts = [whole[f"beaconscore_{part}"] for part in ("attestation", "proposal", "sync_committee")]
    weighted = 0.844 * parts[0] + 0.125 * parts[1] + 0.031 * parts[2]
    assert whole["beaconscore"] == pytest.approx(weighted)
    assert max(parts) <= 1


def test_the_queues_are_requested_in_the_new_shape():
    """The request names the media type, so the shape of the response is fixed."""
    answer = (
        b'{"data": {"exit_queue": {"count": 3, "balance": "96"},'
        b' "deposit_queue": {"deposit_count": 1, "deposit_balance": "32"}}}'
    )

    with (
        replaying({"*": answer}) as server,
        bf.Explorer(server.url, chain="hoodi", rate=1000) as explorer,
    ):
        frame = bf.v2.load_queues(explorer=explorer)

    assert [b'{"chain":"hoodi"}'] == server.posted
    assert ["application/vnd.beaconcha.in.v2.1+json"] == server.accepted
    assert 3 == frame["exit_count"].item()


def test_the_queues_are_always_served_in_the_new_shape(explorer):
    """The local explorer has no old shape."""
    for accept in ("application/json", "application/vnd.beaconcha.in.v2.1+json"):
        reply = httpx.post(
            f"{explorer.url}{ETHEREUM}/queues", json={}, headers={"Accept": accept}
        ).json()

        assert {"epoch", "timestamp"} == set(reply["data"]["exit_queue"]["estimated_processed_at"])
        assert {"data"} == set(reply)


def test_metrics_of_machines(explorer):
    """Each machine has three processes; range and name filter the readings."""
    whole = bf.v2.load_machine_metrics()
    names = bf.v2.load_machine_names()["machine"].to_list()
    middle = whole["time"].sort()[whole.height // 2]

    assert names == whole["machine"].unique().sort().to_list()
    assert {"system", "validator", "node"} == set(whole["process"])
    later = bf.v2.load_machine_metrics(names[:2], since=middle)
    expected = whole.filter(pl.col("machine").is_in(names[:2]), pl.col("time") >= middle)
    assert_frame_equal(expected, later)
    assert 0 == bf.v2.load_machine_metrics(until="2020-01-01").height


@pytest.mark.parametrize(
    "arguments",
    [
        {"machines": 5},
        {"machines": [""]},
        {"since": 7},
        {"since": "2026-10-02", "until": "2026-10-01"},
    ],
)
def test_invalid_machines_and_times_raise(arguments, explorer):
    """The call raises before any request."""
    before = explorer.requests

    with pytest.raises(errors.UsageError):
        bf.v2.load_machine_metrics(**arguments)

    assert before == explorer.requests


@pytest.mark.parametrize(
    "body",
    [{"machines": "a"}, {"range": 5}, {"range": {"timestamp": {"start": 9, "end": 3}}}],
)
def test_a_bad_request_for_metrics_is_refused(body, explorer):
    """The error has the words of the specification."""
    assert 400 == post(explorer, "/api/v2/machine-metrics", body)[0]


def test_requested_and_system_withdrawals(chain, explorer):
    """E16: slots have requested, system and rejected withdrawals, each with its stages."""
    scan = chain.scan
    paid = scan("manual_withdrawal_events").head(1).collect().row(0, named=True)
    switch = scan("switch_events").filter(pl.col("amount_gwei") > 0).head(1).collect()
    rejected = scan("rejected_request_events").head(1).collect()

    def load(slot, kind, status="completed"):
        found = bf.v2.load_slot_withdrawals(slot, type_filter=kind)
        return found.filter(status=status).row(0, named=True)

    row = load(paid["slot"], "manual")
    v1 = bf.load_slot_withdrawals(paid["slot"]).filter(validator_index=paid["validator_index"])
    assert paid["validator_index"] == row["validator_index"]
    assert v1["amount_gwei"].item() * 10**9 == row["amount_wei"]
    assert [
        {"stage": "queued", "slot": paid["request_slot"]},
        {"stage": "completed", "slot": paid["slot"]},
    ] == json.loads(row["stage_history"])
    slots = bf.v2.load_slot([paid["slot"], paid["request_slot"]]).filter(status="success")
    assert 0 < slots["queued_manual_withdrawals_count"].sum()
    manual = slots.filter(slot=paid["slot"]).row(0, named=True)
    whole = bf.load_slots(paid["slot"])["withdrawals_count"].item()
    assert whole == sum(
        manual[f"processed_{kind}_count"] for kind in ("sweeps", "manual_withdrawals")
    )

    row = load(switch["slot"].item(), "system")
    assert switch["amount_gwei"].item() * 10**9 == row["amount_wei"]
    in_v1 = bf.load_slot_withdrawals(switch["slot"].item())["validator_index"]
    assert row["validator_index"] not in in_v1
    row = load(rejected["slot"].item(), "manual", "rejected")
    assert "no compounding credentials" in row["reject_reason"]
    assert [{"stage": "rejected", "slot": row["slot"]}] == json.loads(row["stage_history"])
    requests, done = (
        scan(f"{kind}_events").select(pl.len()).collect().item()
        for kind in ("withdrawal_request", "manual_withdrawal")
    )
    assert requests - done == bf.v2.load_queues()["manual_withdrawal_count"].item() > 0
