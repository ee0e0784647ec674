"""Loads from a node end as those from a service do: options, interruptions, gaps, threads."""

from __future__ import annotations

import pickle
import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pandas as pd
import polars as pl
import pytest

import beaconframes as bf
from beaconframes import progress
from beaconframes.client.explorer import default_explorers
from beaconframes.errors import (
    BadRequest,
    ConfigError,
    ConnectionFailed,
    MissingRows,
    NotFound,
    NotServed,
    RequestTimeout,
    SchemaError,
    TableNotInDataset,
    UnreconciledRows,
    UsageError,
)
from beaconframes.http import retry

from ..support.beacon_node_faults import DebugForbidden, Fault, MoreBalance, PrunedStates
from ..support.beacon_node_stub import BeaconNodeStub

BLOCK = "/eth/v2/beacon/blocks/{block_id}"
HEAD = 95


class NoBlocksFrom(Fault):
    """The node refuses blocks from a slot on, and calls *action* with each refusal."""

    def __init__(self, slot, action=lambda: None, pause=0):
        self.slot, self.action, self.pause = slot, action, pause

    def refuse(self, node, request):
        if request.route != BLOCK or not request.args["block_id"].isdigit():
            return None
        if self.slot is None or int(request.args["block_id"]) < self.slot:
            return None
        self.action()
        answer = node.error(400, "the database is corrupt")
        answer.pause = self.pause
        return answer


@pytest.fixture
def stub():
    with BeaconNodeStub("capella", head=HEAD) as stub:
        yield stub


def load(**options):
    return bf.load_income_history([1, 2], since=5, until=6, **options)


WRONG = (1, 7 * 8, 1)
"""From epoch 7 on, the node states 1 gwei too much for validator 1."""


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param([], id="states"),
        pytest.param(["debug-forbidden"], id="routes", marks=pytest.mark.more),
    ],
)
def test_a_load_warns_of_rows_that_balances_do_not_confirm(faults):
    """The change of epoch 7 contains income of epochs 5 to 7, of validator 1 alone."""
    with (
        BeaconNodeStub("capella", head=159, faults=[*faults, MoreBalance(WRONG)]) as stub,
        bf.node(stub.url, store=False) as node,
    ):
        words = r"do not confirm these rows: \+1 gwei of validator 1 in epoch 7 .*node.coverage\(\)"
        with pytest.warns(UnreconciledRows, match=words) as caught:
            assert 4 == load().height
        assert 1 == len(caught)
        changes = caught[0].message.changes
        assert [(1, 7, 1)] == changes.select("validator_index", "epoch", "unexplained_gwei").rows()
        with pytest.warns(UnreconciledRows):
            bf.load_balance_history([1], since=7, until=7)
        with pytest.warns(UnreconciledRows):
            bf.load_income_history(bf.load_validators([1])["pubkey"], since=6, until=6)
        with pytest.warns(UnreconciledRows):
            bf.v2.load_rewards([1, 2], since=6, until=6)
        with pytest.warns(UnreconciledRows):
            bf.load_income_history([1], since=5, until=5)
        with pytest.raises(UnreconciledRows, match="validator 1 in epoch 7") as raised:
            load(strict=True)
        assert 4 == raised.value.rows.height
        assert 1 == raised.value.changes.height

        # Other validators, epochs and tables.
        bf.load_income_history([2], since=5, until=7)
        bf.load_income_history([1], since=4, until=4)
        bf.load_income_history([1], since=8, until=8)
        bf.load_attestations([1], since=6, until=6)
        status = dict(node.coverage().select("epoch", "status").iter_rows())
        assert {4: "explained", 5: "unexplained", 6: "unexplained", 7: "unexplained",
                8: "explained"} == status  # fmt: skip
        assert re.search(r"stored epochs +2 explained, 3 unexplained$", str(node))
        assert "2 explained, 3 unexplained" in node._repr_html_()


@pytest.mark.more
def test_a_node_without_stored_epochs_prints_no_verdict(stub):
    with bf.node(stub.url, store=False) as node:
        assert "stored epochs" not in str(node)
        load()
        assert re.search(r"stored epochs +2 explained$", str(node))
        assert {"explained"} == set(node.coverage()["status"])
    assert "stored epochs" not in str(node)


def test_an_export_warns_of_rows_that_balances_do_not_confirm(tmp_path):
    with (
        BeaconNodeStub("capella", head=HEAD, faults=[MoreBalance(WRONG)]) as stub,
        bf.node(stub.url, store=False),
        pytest.warns(UnreconciledRows),
    ):
        bf.export(bf.load_income_history, tmp_path / "a.parquet", validators=[1], since=5, until=6)
    assert 2 == pl.read_parquet(tmp_path / "a.parquet").height


@pytest.mark.more
def test_a_report_warns_of_rows_that_balances_do_not_confirm():
    with (
        BeaconNodeStub("capella", head=159, faults=[MoreBalance(WRONG)]) as stub,
        bf.node(stub.url, store=False),
        pytest.warns(UnreconciledRows, match="of validator 1 in epoch 7"),
    ):
        report = bf.report([1, 2], since=5, until=6)
    assert report.frames["income"].height


def test_an_interrupted_load_continues(stub):
    """The error names node, epoch and what is stored; the same call requests the rest only."""
    fault = NoBlocksFrom(8 * 8)
    stub.faults.append(fault)
    address = f"http://alice:ZEBRA-9f86d081@{stub.url[7:]}"
    with bf.node(address, store=False) as node:
        with pytest.raises(BadRequest) as caught:
            load()
        expected = f"node {stub.url}, epoch 6: 1 of 2 epochs of this load are stored"
        assert expected in str(caught.value)
        assert str(caught.value).endswith("The same call continues after them")
        assert "ZEBRA" not in str(caught.value)
        assert {"": ((5, 5),)} == node.index.chain_index.dataset.coverage("income_history")

        fault.slot = None
        stub.counts.clear()
        assert 4 == load().height
        # A request that was under way when the first load failed may arrive after the count starts.
        assert 3 * 8 <= stub.counts[BLOCK] < 4 * 8


@pytest.mark.more
def test_ctrl_c_keeps_stored_epochs(stub):
    """Ctrl-C ends a load immediately although a response hangs; stored epochs remain."""
    main = threading.main_thread().ident

    def interrupt():
        # Later, when the load waits for the response, and stores no epoch.
        fault.action = lambda: None
        threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT)).start()

    fault = NoBlocksFrom(8 * 8, interrupt, pause=20)
    stub.faults.append(fault)
    with bf.node(stub.url, store=False) as node:
        with pytest.raises(
            KeyboardInterrupt, match="of 2 epochs of this load are stored"
        ) as caught:
            load()
        covered = node.index.chain_index.dataset.coverage("income_history").get("", ((5, 4),))
        assert f"epoch {covered[0][1] + 1}: {covered[0][1] - 4} of 2" in str(caught.value)
        assert node.connection.api.session._session._transport is None
        fault.slot = None
        assert 4 == load().height


def test_a_node_that_dies_is_named(stub, monkeypatch):
    """A lost connection is retried, and its error has node and epoch, not the local explorer."""
    monkeypatch.setattr(retry, "back_off", lambda _: 0.01)
    with bf.node(stub.url, store=False):
        stub.faults.append(Dead())
        with pytest.raises(ConnectionFailed, match=f"node {stub.url}, epoch 5: 0 of 2") as caught:
            load()
    assert 4 == caught.value.attempts


class Dead(Fault):
    """The node closes every connection for a block."""

    def refuse(self, node, request):
        if request.route == BLOCK:
            raise ConnectionResetError


def test_old_epochs_of_a_pruned_node(stub):
    """The gap states the oldest usable epoch, and the flag with which the client stores more."""
    stub.faults.append(PrunedStates(7))
    with bf.node(stub.url, store=False):
        expected = r"before epoch 6, the oldest that this node can answer: start Lodestar with --"
        with pytest.warns(MissingRows, match=f"2 of 2 .*: 2 {expected}"):
            assert 0 == bf.load_balance_history([1, 2], since=3, until=4).height
        assert bf.missing()["reason"].str.contains(expected).all()
        with pytest.warns(MissingRows, match=rf"epoch 5 \({expected}"):
            assert {6} == set(bf.load_balance_history([1], since=5, until=6)["epoch"])
        assert 8 == bf.load_epoch_slots(since=2, until=2).height
        with pytest.raises(NotServed, match=f"needs epochs 3 to 4, {expected}"):
            bf.load_epochs(since=3, until=4)
        # "Try again later" was the advice of V2.
        for until in (4, 6):
            with pytest.raises(NotServed, match=rf"rewards needs epochs 3 to .*{expected}.*from 6"):
                bf.v2.load_rewards([1], since=3, until=until)
        with pytest.raises(MissingRows, match="the oldest that this node can answer"):
            bf.load_balance_history([1], since=3, until=4, strict=True)


@pytest.mark.more
def test_several_loads_at_once(stub):
    """Threads share one connection; each gets the rows of its own load."""
    calls = [
        lambda: bf.load_income_history([1], since=3, until=3),
        lambda: bf.load_balance_history([2], since=3, until=4),
        lambda: bf.v2.load_balances([3], since=4, until=4),
    ]
    with bf.node(stub.url, store=False), ThreadPoolExecutor(4) as threads:
        together = [future.result() for future in [threads.submit(call) for call in calls]]
    with bf.node(stub.url, store=False):
        for call, frame in zip(calls, together, strict=True):
            assert frame.height > 0
            assert frame.equals(call())


@pytest.mark.more
def test_options_are_those_of_an_explorer(stub, monkeypatch):
    """Frame, strictness and timeouts are those of the node; settings for the API do not apply."""
    monkeypatch.setenv("BEACONFRAMES_RATE", "0.001")
    monkeypatch.setenv("BEACONFRAMES_OFFLINE", "1")
    with bf.node(stub.url, store=False, frame="pandas", rate=1000, timeout=(30, 60)) as node:
        assert isinstance(bf.load_balance_history([1], since=3, until=3), pd.DataFrame)
        assert 1000 == node.rate
        stub.faults.append(NoBlocksFrom(0, pause=20))
        node._given["timeout"] = None, 0.2
        with pytest.raises(RequestTimeout, match=r"within 0\.2 s"):
            bf.load_income_history([1], since=5, until=5)


class SilentStates(Fault):
    """The node does not answer requests for SSZ states."""

    def refuse(self, node, request):
        if "/debug/" not in request.route:
            return None
        answer = node.error(404, "")
        answer.pause = 20
        return answer


def test_the_first_requests_end_with_the_timeout():
    """The probe waited ten minutes for each state, whatever timeout= was."""
    with (
        BeaconNodeStub("capella", head=HEAD, faults=[SilentStates()]) as stub,
        pytest.raises(RequestTimeout, match=r"within 0\.3 s"),
    ):
        bf.node(stub.url, store=False, timeout=(None, 0.3))


@pytest.mark.more
def test_address_from_the_environment(stub, monkeypatch):
    """BEACONFRAMES_NODE is the default address; an execution node belongs to it."""
    with pytest.raises(ConfigError, match="no node is given"):
        bf.node()
    monkeypatch.setenv("BEACONFRAMES_NODE", stub.url)
    monkeypatch.setenv("BEACONFRAMES_EXECUTION", stub.execution_url)
    with bf.node(store=False) as node:
        assert stub.url == node.connection.url
        assert node.connection.execution is not None
    with bf.node(stub.url, store=False) as node:
        assert node.connection.execution is None
    with pytest.raises(ConfigError, match="url is not an address"):
        bf.beacon_node.Node(5052)


def test_a_closed_node_loads_nothing(stub):
    """The error names the node and what opens it again; a node may be closed twice."""
    node = bf.node(stub.url, store=False)
    node.close()
    node.close()
    with pytest.raises(UsageError, match=rf"{stub.url} is closed.* bf\.node"):
        bf.load_validators([1], explorer=node)


def test_the_coverage_of_a_closed_node(stub):
    """Its index may be deleted; the disk is not the reason."""
    node = bf.node(stub.url, store=False)
    node.close()
    with pytest.raises(UsageError, match=rf"{stub.url} is closed.* bf\.node"):
        node.coverage()


def test_the_first_days_of_a_chain(stub):
    """Daily statistics begin with the day of genesis, -1, which has no epochs."""
    with bf.node(stub.url, store=False), pytest.raises(TableNotInDataset, match="no whole day"):
        bf.load_validator_stats([1])


def test_epochs_that_the_chain_does_not_have(stub):
    """The first load of a node, of a table beside which blocks are read."""
    with bf.node(stub.url, store=False):
        for load in (bf.load_validator_withdrawals, bf.load_proposals, bf.load_income_history):
            with pytest.raises(UsageError, match=r"epoch 10000[01] is in the future"):
                load([1], since=10**5, until=10**5 + 1)


@pytest.mark.more
def test_a_failed_connection_leaves_nothing(stub):
    """An invalid option closes the connection, and the previous explorer stays."""
    before, threads = list(default_explorers), set(threading.enumerate())
    with pytest.raises(ConfigError, match="frame"):
        bf.node(stub.url, store=False, frame="duckdb")
    assert before == default_explorers
    for thread in set(threading.enumerate()) - threads:
        thread.join(60)
        assert not thread.is_alive(), thread.name


@pytest.mark.more
def test_rows_of_unknown_validators_are_not_available_from_the_node(stub):
    """The source of the user is the node, not the dataset into which it is read."""
    with bf.node(stub.url, store=False):
        with pytest.warns(MissingRows, match=r"1 of 1 .*: 1 not available from the node \(99\)"):
            bf.load_balance_history([99], since=3, until=3)
        assert ["not available from the node"] == bf.missing()["reason"].to_list()


@pytest.mark.more
def test_quota_store_and_pickling(stub, tmp_path):
    """A node has no quota; its store is the index; it stays in its process."""
    with bf.node(stub.url, store=tmp_path) as node:
        quota = bf.quota()
        assert (stub.url, None, node.requests) == (quota.host, quota.month, quota.used)
        assert "your own node has no quota" in quota.source
        bf.load_balance_history([1], since=3, until=3)
        assert "balance_history" in bf.store().tables()["table"].to_list()
        bf.store().prune("balance_history")
        assert 1 == bf.load_balance_history([1], since=3, until=3).height
        assert bf.missing().is_empty()
        with pytest.raises(UsageError, match=r"cannot be pickled or copied\. Call bf\.node"):
            pickle.dumps(node)
    with bf.node(stub.url, store=False), pytest.raises(ConfigError, match="has no store"):
        bf.store()


@pytest.mark.more
def test_progress_counts_epochs_of_the_node(stub, monkeypatch, capsys):
    """The bar has the epochs and the requests of the node; stored epochs show nothing."""
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "REFRESH_INTERVAL", 0.01)
    with bf.node(stub.url, store=False, progress=True):
        bf.load_balance_history([1], since=3, until=4)
        shown = capsys.readouterr().err
        assert re.search(r"balance_history: +\d+%.* [012]/2 \[", shown)
        assert "2/2" in [line for line in shown.split("\r") if "balance" in line][-1]
        assert "37 requests" in shown
        bf.load_balance_history([1], since=3, until=4)
        assert "" == capsys.readouterr().err


@pytest.mark.more
def test_the_latest_epoch_needs_no_other_epochs(stub):
    """Words such as "latest" select one epoch, not the chain; it need not be final yet."""
    blocks = {}
    with bf.node(stub.url, store=False) as node:
        for load in (bf.load_epoch_slots, bf.load_epochs, bf.load_sync_committees):
            stub.counts.clear()
            assert load().height > 0
            blocks[load.__name__] = stub.counts[BLOCK]
        latest = node.index.head.epoch
        assert [latest] == bf.load_epochs()["epoch"].to_list()
        assert {latest} == set(bf.load_epoch_slots()["epoch"])
        assert bf.load_graffiti_wall().height > 0
        assert bf.v2.load_proposal_slots([1, 2]).width > 0
    assert max(blocks.values()) <= 2 * 8


def test_the_efficiency_needs_the_epochs_that_it_rates(stub):
    """The epochs before the latest one are rated, although they are not final yet."""
    with bf.node(stub.url, store=False) as node:
        assert bf.load_attestation_efficiency([1, 2])["validator_index"].to_list() == [1, 2]
        covered = node.index.chain_index.dataset.coverage("attestations")
        assert {"": ((0, node.index.head.epoch - 1),)} == covered


@pytest.mark.more
def test_old_attestations_do_not_show_who_attests_now(stub):
    """The status and the last attestation of a validator are unknown without recent duties."""
    columns = ["status", "last_attestation_slot"]
    with bf.node(stub.url, store=False) as node:
        bf.load_attestations([1], since=3, until=3)
        node.index._write_head(node.index._status, set())
        assert [("active", None)] == bf.load_validators([1]).select(columns).rows()
        last = bf.load_attestations([1], since=-2)["attester_slot"].max()
        node.index._write_head(node.index._status, set())
        assert [("active_online", last)] == bf.load_validators([1]).select(columns).rows()


@pytest.mark.more
@pytest.mark.parametrize("load", [bf.load_yield_index, bf.v2.load_yield_index])
@pytest.mark.parametrize("wanted", [{}, {"since": 0}])
def test_the_yield_index_needs_an_execution_node(stub, load, wanted):
    """It is refused as other tables that follow from the execution layer."""
    with (
        bf.node(stub.url, store=False),
        pytest.raises(NotServed, match=r"load_yield_index .* needs an execution node"),
    ):
        load(**wanted)


@pytest.mark.parametrize("source", [[], [DebugForbidden()]])
def test_the_next_sync_committee_is_the_one_that_signs_later(source):
    """A period has 64 slots: at slot 111 the committee of slot 128 is known, of period 2."""
    with BeaconNodeStub("capella", head=150) as stub, bf.node(stub.url, store=False):
        expected = bf.load_sync_committees([1, 2])
    with (
        BeaconNodeStub("capella", head=111, faults=source) as stub,
        bf.node(stub.url, store=False) as node,
    ):
        planned = bf.plan(bf.load_sync_committees, "next", explorer=node)
        assert (1, ()) == (planned.requests, planned.unavailable)
        sent = len(stub.requests)
        rows = bf.load_sync_committees("next")
        assert 1 == len(stub.requests) - sent
        assert expected.equals(bf.load_sync_committees(["latest", "next"]))
        assert [2] == bf.v2.load_sync_committee("next")["period"].to_list()
        stub.head = 150
        vars(node.index).update(_read_at=-1e9)
        assert rows.equals(bf.load_sync_committees("latest"))

    assert expected.filter(period=2).equals(rows)


@pytest.mark.parametrize("load", [bf.load_sync_committees, bf.v2.load_sync_committee])
def test_a_later_sync_committee_is_refused_by_number(stub, load):
    """Epochs 0 to 10 are complete, and a period has 8 epochs: the one after next is not drawn."""
    refused = pytest.raises(NotFound, match=r"period 3 (begins in epoch 24|is not known)")
    with bf.node(stub.url, store=False) as node, refused:
        assert "period 3" in str(bf.plan(load, 3, explorer=node))
        load([1, 3])


@pytest.mark.parametrize(("finalized", "is_known"), [(10, False), (11, True)])
def test_the_next_sync_committee_is_known_once_the_period_is_final(finalized, is_known):
    """It is drawn in epoch 8, whose income is final once epoch 11 is."""
    with (
        BeaconNodeStub("capella", head=90, finalized=finalized) as stub,
        bf.node(stub.url, store=False),
        nullcontext() if is_known else pytest.raises(NotFound, match=r"epoch 8 is not final yet"),
    ):
        assert {2} == set(bf.load_sync_committees("next")["period"])


class Syncing(Fault):
    """The node is 500 slots behind the head of the chain."""

    def change(self, node, request, answer):
        if request.route != "/eth/v1/node/syncing":
            return answer
        return answer.with_data({**answer.data, "sync_distance": "500", "is_syncing": True})


@pytest.mark.parametrize(("head", "slot", "block"), [(3, 7, 3), (199, 191, 190), (207, 199, 199)])
def test_the_latest_state_has_the_last_block(head, slot, block):
    """Slot 191 of the recording has no block."""
    with BeaconNodeStub("capella", head=head) as stub, bf.node(stub.url, store=False):
        state = bf.load_latest_state()
        v2 = bf.v2.load_state()

    assert state.select("current_slot", "last_proposed_slot").rows() == [(slot, block)]
    assert v2["last_proposed_slot"].to_list() == [block]
    assert state["syncing"].to_list() == [False]


def test_the_latest_state_states_that_the_node_synchronizes():
    with (
        BeaconNodeStub("capella", head=HEAD, faults=[Syncing()]) as stub,
        bf.node(stub.url, store=False),
    ):
        assert bf.load_latest_state()["syncing"].to_list() == [True]


def test_upcoming_duties_are_those_that_the_chain_has_later():
    """Of the rest of epoch 11 and of epoch 12, as later blocks and committees show them."""
    head, chosen = 90, [1, 4, 5, 9, 15]
    with BeaconNodeStub("capella", head=head + 40) as stub, bf.node(stub.url, store=False):
        keys = bf.load_validators(chosen).select("validator_index", "pubkey")
        attested = bf.load_attestations(chosen, since=11, until=12)
        blocks = bf.load_epoch_slots(since=11, until=12)
        members = set(bf.load_sync_committees([1])["validator_index"])
    with BeaconNodeStub("capella", head=head) as stub, bf.node(stub.url, store=False):
        rows = bf.v2.load_upcoming_duty_slots([*chosen[1:], keys["pubkey"][0]])
        planned = bf.plan(bf.v2.load_upcoming_duty_slots, chosen).requests
        sent = len(stub.requests)
        bf.v2.load_upcoming_duty_slots(chosen)
        assert 5 == planned == len(stub.requests) - sent

    assert {(head + 1, 103)} == set(rows.select("first_slot", "last_slot").rows())
    assert set(keys.rows()) == set(rows.select("validator_index", "pubkey").rows())
    duties = [
        *attested.select("attester_slot", "validator_index", pl.lit("attestation")).rows(),
        *blocks.select("slot", "proposer_index", pl.lit("proposal")).rows(),
        *((slot, index, "sync_committee") for index in members for slot in range(88, 104)),
    ]
    expected = [row for row in duties if row[0] > head and row[1] in chosen]
    assert sorted(expected) == rows.select("slot", "validator_index", "duty").rows()
    assert {"attestation", "proposal", "sync_committee"} == set(rows["duty"])


@pytest.mark.more
def test_upcoming_duties_of_two_sync_periods():
    """The next epoch, 32, has another committee, of fewer validators: it is requested, too."""
    with BeaconNodeStub("capella", head=250) as stub, bf.node(stub.url, store=False):
        planned = bf.plan(bf.v2.load_upcoming_duty_slots, range(16)).requests
        sent = len(stub.requests)
        rows = bf.v2.load_upcoming_duty_slots(range(16))
        assert 6 == planned == len(stub.requests) - sent
    with BeaconNodeStub("capella", head=290) as stub, bf.node(stub.url, store=False):
        seats = bf.load_sync_committees([3, 4])

    found = rows.filter(duty="sync_committee").with_columns(period=pl.col("slot") // 64)
    expected, found = (each.select("period", "validator_index").unique() for each in (seats, found))
    assert set(expected.rows()) == set(found.rows())
    assert {249} == set(rows["first_slot"])  # Slots 249 and 250 have no block.


def test_upcoming_duties_that_are_past_are_not_upcoming(tmp_path):
    """The index of a node is read later without the node: its head has moved on."""
    index = tmp_path / "index"
    with BeaconNodeStub("capella", head=90) as stub:
        with bf.node(stub.url, store=index):
            assert bf.v2.load_upcoming_duty_slots([4]).height > 0
        stub.head = 170
        with bf.node(stub.url, store=index):
            bf.load_latest_state()
    (folder,) = {path.parent for path in index.rglob("upcoming_duties")}
    with bf.open(folder):
        assert 0 == bf.v2.load_upcoming_duty_slots([4]).height


def test_an_attestation_duty_of_another_epoch_is_an_error():
    class LaterSlot(Fault):
        def change(self, node, request, answer):
            if "/duties/attester/" in request.route:
                data = [{**row, "slot": "200"} for row in answer.data]
                return answer.with_data(data)
            return answer

    error = pytest.raises(SchemaError, match=r"slot 200, which is not in epoch 11")
    faults = [LaterSlot()]
    with (
        BeaconNodeStub("capella", head=90, faults=faults) as stub,
        bf.node(stub.url, store=False),
        error,
    ):
        bf.v2.load_upcoming_duty_slots([4])


def test_attestation_duties_that_are_not_final_do_not_exist(stub):
    """The income of epoch 6 is the last final one: later duties are not missed, but refused."""
    expected = r"requested slot 56 is greater than latest finalized slot 55"
    with bf.node(stub.url, store=False):
        assert {55} == set(bf.v2.load_slot_attestation_duties()["slot"])
        for slots in (56, [55, 56]):
            with pytest.raises(NotFound, match=expected):
                bf.v2.load_slot_attestation_duties(slots)
        with pytest.raises(NotFound, match="slot 88 does not exist yet"):
            bf.v2.load_slot(88)
