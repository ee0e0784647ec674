"""Validators in V2: equal to V1 on the simulated chain."""

from __future__ import annotations

import json
from types import SimpleNamespace

import httpx
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors
from beaconframes.answers.v2 import duties, duty_slots, rewards
from beaconframes.server import Server

from ..support.faults import FAULTS, FaultServer, error_body


def test_balances_equal_those_of_v1(explorer):
    """Wei equals gwei over some epochs and validators; the latest epoch is not final."""
    first = bf.to_wei(bf.load_balance_history(range(790, 830), since=-3))
    second = bf.v2.load_balances(range(790, 830), since=-3)

    assert_frame_equal(first, second.select(first.columns))
    assert second.height == second["pubkey"].n_unique() * 3
    final = second["epoch"] <= explorer.service.head.finalized_epoch
    assert 0 < final.sum() < len(final)
    assert final.to_list() == (second["finality"] == "finalized").to_list()


def test_a_set_may_have_no_rows(explorer):
    """Only the service knows its validators: all may be inactive, or there may be none."""
    no_validators = bf.v2.withdrawal("0x" + "ab" * 20)
    for load in (bf.v2.load_rewards, bf.v2.load_performance, bf.v2.load_balances):
        with pytest.warns(errors.MissingRows, match="epoch 460 to 462"):
            assert 0 == load(no_validators, since=460, until=462).height


def test_a_set_begins_with_its_first_activation(chain, explorer):
    """Its rows are those of the list of its validators."""
    lives = chain.scan("validators").filter(pl.col("activation_epoch") > 9).collect()
    one = lives.row(0, named=True)
    first = one["activation_epoch"]
    address = bf.v2.withdrawal("0x" + one["withdrawal_credentials"][-40:])
    with pytest.warns(errors.MissingRows):
        found = bf.v2.load_rewards(address, since=first - 3, until=first + 1)

    listed = bf.v2.load_rewards([one["validator_index"]], since=first - 3, until=first + 1)
    assert 2 == listed.height
    assert_frame_equal(listed, found.filter(validator_index=one["validator_index"]))


@pytest.mark.parametrize(
    "load",
    [
        lambda text: bf.v2.load_sub_entities(text("Skerry Staking")),
        lambda text: bf.v2.load_rewards(bf.v2.entity(text("Skerry Staking")), since=460, until=460),
        lambda text: bf.v2.load_entities(text("7d"), sort_by=text("beaconscore")),
        lambda text: bf.v2.load_slot_withdrawals(5000, type_filter=[text("full_exit_sweep")]),
    ],
)
@pytest.mark.filterwarnings("ignore::beaconframes.errors.EndpointDeprecated")
def test_texts_of_numpy_are_texts(load, explorer):
    assert_frame_equal(load(str), load(np.str_))


@pytest.fixture(scope="module")
def late(chain):
    """Return an epoch with stored duties, of which one is missed."""
    missed = chain.scan("attestations").filter(pl.col("status") == "missed").collect()
    final = missed.filter(pl.col("epoch") <= chain.meta["finalized_epoch"])
    return int(final.group_by("epoch").len().sort("len", "epoch")["epoch"][-1])


@pytest.mark.more
def test_attestation_duties_equal_those_of_v1(late, explorer):
    """Votes, delays and rewards equal those of V1."""
    who = range(0, 800, 4)
    votes = bf.load_attestations(who, since=late, until=late)
    income = bf.load_income_history(who, since=late, until=late)
    found = bf.v2.load_performance(votes["validator_index"].to_list(), since=late, until=late)

    included = votes["status"] == "included"
    assert 0 < included.sum() < len(included)
    assert included.cast(int).to_list() == found["attestations_included"].to_list()
    assert (~included).cast(int).to_list() == found["attestations_missed"].to_list()
    delay = votes["inclusion_slot"] - votes["attester_slot"] - 1
    assert delay.fill_null(0).to_list() == found["average_inclusion_delay"].to_list()
    for vote in ("head", "source", "target"):
        right = income[f"attestation_{vote}_reward_gwei"] > 0
        assert right.cast(int).to_list() == found[f"correct_{vote}"].to_list()
    weighed = 14 * found["correct_head"] + 14 * found["correct_source"]
    score = (weighed + 26 * found["correct_target"]) / 54
    assert score.to_list() == pytest.approx(found["beaconscore_attestation"].to_list())


@pytest.mark.more
def test_old_epochs_have_delays_and_misses(explorer):
    """E13: also before the hundred epochs of V1; every active validator has one attestation."""
    scan = explorer.service.dataset.scan
    late = scan("late_attestation_events").filter(pl.col("epoch").is_between(298, 299)).collect()
    missed = scan("missed_attestation_events").filter(pl.col("epoch") < 300).tail(1).collect()
    whole = bf.v2.load_performance(late["validator_index"], since=late["epoch"][0], until=299)

    found = whole.join(late, on=["validator_index", "epoch"]).sort("slot", "validator_index")
    expected = late.sort("slot", "validator_index")
    delay = expected["inclusion_slot"] - expected["slot"] - 1
    assert delay.to_list() == found["average_inclusion_delay"].to_list()
    assert delay.min() > 0
    proposed = set(scan("blocks").filter(pl.col("status") == "proposed").collect()["slot"])
    passed_blocks = [
        len(proposed.intersection(range(first + 1, last)))
        for first, last in expected.select("slot", "inclusion_slot").rows()
    ]
    assert passed_blocks == found["average_inclusion_delay_without_missed_slots"].to_list()
    assert {0, 1} <= set(passed_blocks)
    row = bf.v2.load_performance(missed["validator_index"], since=missed["epoch"][0], until=299)
    assert (1, 0, 1, 0) == row.select(
        "attestations_assigned",
        "attestations_included",
        "attestations_missed",
        "average_inclusion_delay",
    ).row(0)


@pytest.mark.more
def test_other_duties_equal_those_of_blocks_and_committees(explorer):
    """Proposals equal the slots of the epoch, signatures the duties of its slots."""
    slots = bf.load_epoch_slots(since=40, until=40)
    found = bf.v2.load_performance(bf.v2.dashboard(1), since=40, until=40)

    proposed = slots.filter(pl.col("proposer_index") < 100, pl.col("status") != "scheduled")
    expected = dict(proposed.group_by("proposer_index").len().iter_rows())
    assert expected
    assert expected == dict(
        found.filter(pl.col("proposals_assigned") > 0)
        .select("validator_index", "proposals_assigned")
        .iter_rows()
    )
    assert proposed.filter(status="proposed").height == found["proposals_successful"].sum()
    member = found.filter(pl.col("sync_committee_assigned") > 0)["validator_index"][0]
    duties = bf.v2.load_slot_sync_committee_duties(range(1280, 1312), member)
    own = found.filter(validator_index=member)
    assert [32] == own["sync_committee_assigned"].to_list()
    signed = duties.filter(status="success").height
    assert [signed] == own["sync_committee_successful"].to_list()
    assert [32 - signed] == own["sync_committee_missed"].to_list()


def test_a_missed_proposal_is_counted(explorer, chain):
    """The epoch of a missed slot, for its proposer and for that of another slot."""
    slots = chain.scan("blocks").filter(pl.col("epoch").is_between(20, 440)).collect()
    missed = slots.filter(status="missed").row(0, named=True)
    (proposed,) = (
        slots.filter(status="proposed", epoch=missed["epoch"]).sample(1, seed=1).to_dicts()
    )
    proposers = [missed["proposer_index"], proposed["proposer_index"]]
    assert proposers[0] != proposers[1]

    found = bf.v2.load_performance(proposers, since=missed["epoch"], until=missed["epoch"])

    own = slots.filter(epoch=missed["epoch"]).group_by("proposer_index", "status").len()
    expected = {(row["proposer_index"], row["status"]): row["len"] for row in own.to_dicts()}
    for row in found.to_dicts():
        counts = [row["proposals_successful"], row["proposals_missed"]]
        who = row["validator_index"]
        assert [expected.get((who, state), 0) for state in ("proposed", "missed")] == counts
    assert found["proposals_missed"].sum() > 0


@pytest.mark.more
def test_performance_of_a_set_follows_from_its_duties(explorer):
    """Counts are sums, and scores are computed from them."""
    whole = bf.v2.load_performance_aggregate(range(0, 1000, 11), "24h")
    first, last = whole["first_epoch"][0], whole["last_epoch"][0]
    income = bf.load_income_history(range(0, 1000, 11), since=first, until=last)

    assert (225, explorer.service.head.finalized_epoch) == (last - first + 1, last)
    right = {v: (income[f"attestation_{v}_reward_gwei"] > 0).sum() for v in ("head", "target")}
    assert right == {vote: whole[f"correct_{vote}"][0] for vote in right}
    assert [income.height] == whole["attestations_assigned"].to_list()
    parts = whole.select("beaconscore_attestation", "beaconscore_proposal").row(0)
    sync = whole["beaconscore_sync_committee"][0]
    total = 0.844 * parts[0] + 0.125 * parts[1] + 0.031 * sync
    assert total == pytest.approx(whole["beaconscore"][0])


def test_scores_of_many_validators_raise(explorer):
    """The error names reason and remedy; a dashboard may have any size."""
    before = explorer.requests

    with pytest.raises(errors.UsageError, match="cannot be computed from the results for"):
        bf.v2.load_performance_aggregate(range(101))

    assert before == explorer.requests
    assert 1 == bf.v2.load_performance_aggregate(bf.v2.entity("Skerry Staking")).height


@pytest.mark.more
def test_yields_follow_from_income_and_stake(explorer):
    """The yield of a day is rewards less penalties over the mean effective balance."""
    found = bf.v2.load_apy_roi(bf.v2.dashboard(3, group=1), "24h")
    first, last = found["first_epoch"][0], found["last_epoch"][0]
    who = range(201, 300, 4)
    income = bf.load_income_history(who, since=first, until=last)
    stakes = bf.load_balance_history(who, since=first, until=last)

    gain = sum(income[name].sum() for name in income.columns if name.endswith("_reward_gwei"))
    loss = sum(income[name].sum() for name in income.columns if name.endswith("_penalty_gwei"))
    stake = stakes["effective_balance_gwei"].sum() / 225
    assert found["consensus_roi"][0] == pytest.approx((gain - loss) / stake)
    blocks = bf.load_produced_blocks(who).filter(pl.col("epoch").is_between(first, last))
    received = float(blocks["producer_reward_wei"].sum()) / 10**9
    assert found["execution_roi"][0] == pytest.approx(received / stake)
    assert found["roi"][0] == pytest.approx((gain - loss + received) / stake)
    for name in ("consensus_", "execution_", ""):
        assert found[f"{name}apy"][0] == pytest.approx(365 * found[f"{name}roi"][0])


def test_a_slashed_validator_has_no_votes_after_its_exit(chain, explorer):
    """It has penalties until it can withdraw, but no duties."""
    slashed = chain.scan("validators").filter("slashed").sort("exit_epoch").head(1).collect()
    index, leaves = slashed.select("validator_index", "exit_epoch").row(0)

    found = bf.v2.load_performance(index, since=leaves - 1, until=leaves)

    counts = (f"attestations_{name}" for name in ("assigned", "included", "missed"))
    assigned, included, missed = found.sort("epoch").select(counts).to_numpy().T
    assert [1, 0] == assigned.tolist()
    assert [1, 0] == (included + missed).tolist()


def test_an_orphaned_block_is_not_that_of_a_slot():
    """The number is that of the block in the chain; the newest slot comes first."""
    blocks = {"slot": [8, 8, 9], "proposer_index": 2, "exec_block_number": [5, 6, 7]}
    tables = {
        "blocks": pl.LazyFrame(blocks | {"status": ["orphaned", "proposed", "orphaned"]}),
        "validators": pl.LazyFrame({"validator_index": [2], "pubkey": ["0x22"]}),
    }

    rows = duty_slots.derive_proposals(SimpleNamespace(scan=tables.get)).collect()

    assert [(9, None), (8, 6)] == rows.select("slot", "block_number").rows()


@pytest.mark.more
def test_proposal_slots_equal_the_proposals_of_v1(explorer):
    """Every finalized proposal, with its block if it has one."""
    who = range(0, 1010, 40)
    proposals = bf.load_proposals(who, since=0)
    found = bf.v2.load_proposal_slots(who)

    final = proposals.filter(pl.col("epoch") <= explorer.service.head.finalized_epoch)
    blocks = final.group_by("slot", "proposer_index").agg(
        pl.col("exec_block_number").filter(pl.col("status") == "proposed").first()
    )
    assert found["block_number"].null_count()
    assert (
        blocks.sort("slot").rows() == found.select("slot", "validator_index", "block_number").rows()
    )


@pytest.mark.more
@pytest.mark.parametrize(
    ("span", "first", "last"),
    [
        ({"since": 5000, "until": 5010}, 5000, 5010),
        ({"until": 40}, 1, 40),
        ({"since": -200}, 14_829, 14_975),
        ({"since": "2026-10-01T12:00:23", "until": "2026-10-01T12:04:22"}, 7200, 7219),
        ({"since": "2026-10-01", "until": "2026-10-01"}, 3599, 10_798),
        ({"since": 15_000}, 0, -1),
    ],
)
def test_a_time_range_selects_its_slots(span, first, last, chain, explorer):
    """Both ends are included if finalized: epoch 467 ends with slot 14,975."""
    before = explorer.requests

    found = bf.v2.load_proposal_slots(bf.v2.entity("Fyrlykt"), **span)

    known = chain.scan("validators").filter(pl.col("name") == "Fyrlykt")
    blocks = chain.scan("blocks").filter(pl.col("slot").is_between(first, last))
    theirs = blocks.join(known, left_on="proposer_index", right_on="validator_index")
    slots = theirs.select(pl.col("slot").unique().sort()).collect()["slot"].to_list()
    assert slots == found["slot"].to_list()
    assert max(-(-len(slots) // 10), 1) == explorer.requests - before


@pytest.mark.parametrize(
    "span",
    [
        {"epoch": {"start": 1, "end": 2}},
        {"timestamp": {"start": 5, "end": 4}},
        {"timestamp": {"start": -1}},
        {"timestamp": {"end": 2**31}},
        {"timestamp": [1, 2]},
        [1],
        "24h",
    ],
)
def test_an_invalid_time_range_is_refused(span, explorer):
    """An end before the start, another unit, or no object is refused."""
    body = {"validator": {"dashboard_id": 1}, "range": span}
    reply = httpx.post(f"{explorer.url}/api/v2/ethereum/validators/proposal-slots", json=body)

    assert 400 == reply.status_code


def test_metadata_equals_that_of_v1(chain, explorer):
    """Names, credentials and the first depositor equal those of V1."""
    first = bf.load_validators(range(780, 1010))
    second = bf.v2.load_metadata(range(780, 1010))

    same = ["validator_index", "pubkey", "withdrawal_credentials"]
    assert_frame_equal(first.select(same), second.select(same))
    assert first["name"].to_list() == second["entity"].fill_null("").to_list()
    origins = chain.scan("deposit_origin").collect()
    once = origins.unique("pubkey", keep="none")
    both = second.join(once, on="pubkey")
    assert 200 < both.height
    assert both["from_address"].to_list() == both["deposit_address"].to_list()


def test_entities_are_sets_in_the_requested_order(explorer):
    """Each entity has the score of its set, and its share of all validators.

    E16: the validators of one depositor are a sub-entity. E2: both endpoints state when they end,
    which the client reports once.
    """
    with pytest.warns(errors.EndpointDeprecated, match=r"2026-12-17 10:00 .* Use .*load_owners"):
        found = bf.v2.load_entities("24h", sort_by="net_share", sort_order="asc")
    assert found["net_share"].is_sorted()
    for word in ("beaconscore", "validator_count"):
        found = bf.v2.load_entities("24h", sort_by=word)
        assert found[word].is_sorted(descending=True)

    assert found["net_share"].sum() == pytest.approx(1)
    assert {"Unknown", "Fyrlykt"} < set(found["entity"])
    fyrlykt = found.filter(entity="Fyrlykt")
    whole = bf.v2.load_performance_aggregate(bf.v2.entity("Fyrlykt"), "24h")
    assert whole["beaconscore"][0] == pytest.approx(fyrlykt["beaconscore"][0])
    with pytest.warns(errors.EndpointDeprecated, match=r"2026-12-17.* Use .*load_operators"):
        parts = bf.v2.load_sub_entities("Fyrlykt", "24h")
    assert [2] == fyrlykt["sub_entity_count"].to_list()
    assert parts["net_share"].sum() == pytest.approx(fyrlykt["net_share"][0])
    assert {24} == set(parts["validator_count"])
    part = bf.v2.entity("Fyrlykt", "Fyrlykt 2")
    assert "Fyrlykt 2" in set(parts["sub_entity"])
    alone = bf.v2.load_performance_aggregate(part, "24h")
    expected = parts.filter(sub_entity="Fyrlykt 2")["beaconscore"]
    assert alone["beaconscore"].to_list() == pytest.approx(expected.to_list())
    members = bf.v2.load_metadata(bf.v2.load_validators(part)["validator_index"])
    assert [["Fyrlykt 2"], 1] == [
        members["sub_entity"].unique().to_list(), members["deposit_address"].n_unique()
    ]  # fmt: skip


def refuse_unknown(connection, seen, good, p):
    """Respond with 404 if all requested validators are unknown, or with an empty list."""
    selected = json.loads(seen.body).get("validator", {"validator_identifiers": [0]})
    if min(selected["validator_identifiers"]) < 1010:
        connection.respond(200, good)
    elif p["with"] == "404":
        connection.respond(404, error_body(seen, "no validators found"))
    else:
        connection.respond(200, json.dumps(json.loads(good) | {"data": []}).encode())


@pytest.mark.parametrize("status", ["200", "404"])
@pytest.mark.parametrize(
    ("load", "arguments"),
    [
        (bf.v2.load_validators, {}),
        pytest.param(bf.v2.load_metadata, {}, marks=pytest.mark.more),
        pytest.param(bf.v2.load_balances, {"since": 400, "until": 400}, marks=pytest.mark.more),
        (bf.v2.load_rewards, {"since": 400, "until": 400}),
        pytest.param(bf.v2.load_performance, {"since": 400, "until": 400}, marks=pytest.mark.more),
    ],
)
@pytest.mark.parametrize("known", [0, 100])
def test_unknown_validators_are_named(running, monkeypatch, load, arguments, status, known):
    """A service may answer them with an empty list or with 404; other batches have their rows."""
    monkeypatch.setitem(FAULTS, "unknown", refuse_unknown)
    with (
        FaultServer(f"unknown?with={status}&path=/v2/", upstream=running.url) as server,
        bf.Explorer(server.url, chain=running.service.chain, rate=10_000) as explorer,
        pytest.warns(errors.MissingRows, match=r"unknown to the service \(999998, 999999\)"),
    ):
        rows = load([*range(known), 999_998, 999_999], explorer=explorer, **arguments)

    assert known == rows.height


def test_a_free_key_has_no_metadata_and_no_entities(chain):
    """The error is TierTooLow."""
    calls = [
        lambda explorer: bf.v2.load_metadata(1, explorer=explorer),
        lambda explorer: bf.v2.load_entities(explorer=explorer),
        lambda explorer: bf.v2.load_sub_entities("Fyrlykt", explorer=explorer),
    ]

    with Server(chain, keys={"free-key-0123456789": "free"}) as server:
        for call in calls:
            with (
                bf.Explorer(server.url, api_key="free-key-0123456789", chain="mainnet") as free,
                pytest.raises(errors.TierTooLow, match="subscription tier"),
            ):
                call(free)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("entities", {"range": {"evaluation_window": "all_time"}}),
        ("entities", {"range": {"evaluation_window": "24h"}, "sort_by": "entity"}),
        ("entities", {"range": {"evaluation_window": "24h"}, "sort_by": ["net_share"]}),
        ("entities", {"range": {"evaluation_window": "24h"}, "sort_order": "down"}),
        ("entity/sub-entities", {"range": {"evaluation_window": "24h"}}),
        ("entity/sub-entities", {"range": {"evaluation_window": "24h"}, "entity": 5}),
    ],
)
def test_an_invalid_ranking_is_refused(path, body, explorer):
    """An unlimited window, an unknown word or a missing entity is refused."""
    reply = httpx.post(f"{explorer.url}/api/v2/ethereum/{path}", json=body)

    assert 400 == reply.status_code


def test_missed_rewards(chain, explorer):
    """E16: votes, seats and blocks that were missed state what they would have earned."""
    view = explorer.service.views.current()
    epoch = int(
        view.scan("blocks")
        .filter(pl.col("status") == "missed", pl.col("epoch") <= chain.meta["finalized_epoch"])
        .select(pl.col("epoch").last())
        .collect()
        .item()
    )
    rows = rewards.derive_rows(view).filter(pl.col("epoch") == epoch).collect()
    effective = view.scan("balance_history").filter(effective_balance_gwei=32 * 10**9)
    full = rows.join(effective.collect(), ["validator_index", "epoch"], how="semi")

    for vote in ("head", "source", "target"):
        possible = pl.col(f"attestation_{vote}_reward_wei", f"attestation_{vote}_missed_wei")
        sums = full.select(pl.sum_horizontal(possible)).to_series()
        assert 1 == sums.filter(sums > 0).n_unique()
        assert full[f"attestation_{vote}_missed_wei"].sum() > 0
    assert rows["sync_committee_penalty_wei"].equals(
        rows["sync_committee_missed_wei"], check_names=False
    )
    parts = [
        "attestation_head_missed_wei", "attestation_source_missed_wei",
        "attestation_target_missed_wei", "sync_committee_missed_wei",
        "proposal_missed_cl_reward_wei", "proposal_missed_el_reward_wei",
    ]  # fmt: skip
    assert rows.filter(pl.col("total_missed_wei") != pl.sum_horizontal(parts)).is_empty()
    slots = view.scan("blocks").filter(epoch=epoch, status="missed").collect()
    missed = rows.filter(pl.col("proposal_missed_cl_reward_wei") > 0)
    assert set(slots["proposer_index"]) <= set(missed["validator_index"])
    blocks = view.scan("execution_blocks").filter(epoch=epoch).collect()["producer_reward_wei"]
    once = missed.filter(~pl.col("validator_index").is_in(slots["proposer_index"].filter(
        slots["proposer_index"].is_duplicated()
    )))  # fmt: skip
    assert {int(blocks.sum()) // len(blocks)} == {
        int(wei) for wei in once["proposal_missed_el_reward_wei"]
    }


def test_missed_rewards_of_duties_and_yields(explorer):
    """E16: duties of slots state the missed rewards of their epoch; missed yields are negative."""
    view = explorer.service.views.current()
    epoch = view.head.finalized_epoch
    whole = rewards.derive_rows(view).filter(pl.col("epoch") == epoch).collect()
    own = duties.derive_attestations(view).filter(pl.col("epoch") == epoch).collect()
    both = whole.join(own, "validator_index")

    assert both.height > 900
    for vote in ("head", "source", "target"):
        assert both[f"{vote}_missed_wei"].equals(
            both[f"attestation_{vote}_missed_wei"], check_names=False
        )
    yields = bf.v2.load_apy_roi(range(50), "24h")
    missed = yields.select("consensus_roi_missed", "consensus_apy_missed", "roi_missed")
    assert all(value < 0 for value in missed.row(0))
