"""The routes of the Beacon API: what they return, and which wrong answers are errors."""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import re
import threading
import tracemalloc
from pathlib import Path

import httpx
import numpy as np
import pytest

from beaconframes.beacon_node.client.api import BeaconApi
from beaconframes.beacon_node.client.checked_requests import QUIRKS
from beaconframes.beacon_node.client.session import NodeSession
from beaconframes.beacon_node.client.validator_rows import build_registry
from beaconframes.errors import (
    ConnectionFailed,
    IntegrityError,
    NotFound,
    NotServed,
    ProtocolError,
    SchemaError,
    ServerError,
)

from ..support.beacon_node_faults import FAULTS, Fault, Restarting
from ..support.beacon_node_stub import BeaconNodeStub, compute_header_root
from ..support.faults import FastClock

PAGE = Path(__file__).parents[2] / "docs" / "own-node-index.md"


def connect(recording="capella", **options):
    """Return the API of a stub without sockets, and the stub."""
    stub = BeaconNodeStub(recording, **options)
    return BeaconApi(
        NodeSession("http://node.example", transport=stub.transport, clock=FastClock())
    ), stub


def test_node_and_chain():
    """Version, constants and genesis are those of the recording; each is requested once."""
    api, stub = connect()

    assert "Lodestar/v1.5.1/2115aa7" == api.version() == api.version()
    assert (8, 32) == (api.chain_spec.slots_per_epoch, api.chain_spec.sync_committee_size)
    assert 1795326844 == api.chain_spec.genesis_time
    assert 3 == sum(stub.counts.values()) == len(api.session.measured)
    assert 3 == api.request_count
    assert "479" == api.head()["header"]["message"]["slot"]
    assert "57" == api.finality("head")["finalized"]["epoch"]
    assert "Lodestar/v1.5.1" in repr(api)


class Flags(Fault):
    """Members beside the data of each JSON answer."""

    def __init__(self, **members):
        self.members = members

    def change(self, node, request, answer):
        body = json.loads(answer.body)
        if answer.status == 200 and "data" in body:
            answer.body = json.dumps(body | self.members).encode()
        return answer


def test_the_first_optimistic_slot_is_known_until_the_head_is_verified():
    """A verified head has verified ancestors; a block that is not verified has none after it."""
    flags = Flags(execution_optimistic=True)
    api, stub = connect(faults=[flags])
    api.read_head()
    assert api.optimistic_slot > 2**39  # Of the head, whose slot was not requested.
    for slot, first in ((40, 40), (42, 40), (38, 38)):
        api.header(slot)
        assert first == api.optimistic_slot
    api.proposer_duties(4)
    assert 32 == api.optimistic_slot
    stub.faults.remove(flags)
    api.header(50)
    assert 32 == api.optimistic_slot
    api.read_head()
    assert None is api.optimistic_slot


def test_missed_slot_has_no_block():
    """A 404 of a skipped slot is None; block and header of another slot are those recorded."""
    api, stub = connect()

    assert None is api.block(18) is api.header(18)
    assert "19" == api.block(19)["message"]["slot"]
    header = api.header(20)
    assert header["root"] == stub.recording.ok["header", 20][17:83]
    assert "20" == api.block(header["root"])["message"]["slot"]


@pytest.mark.parametrize("fault", ["", "comma-ids", "no-post-ids"])
def test_validators_are_never_requested_by_comma_lists(fault):
    """Ids are sent by POST, or repeated: neither old clients nor comma lists lose validators."""
    api, stub = connect(faults=[fault] if fault else [])
    rows = api.validators(96, [3, 4, 11])

    assert [3, 4, 11] == [row.index for row in rows]
    assert rows == [row for row in api.validators(96) if row.index in {3, 4, 11}]
    assert rows[0] == api.validators(96, [rows[0].validator.pubkey])[0]
    assert [] == api.validators(96, [])
    assert (fault != "no-post-ids") == (not any("id=" in sent for sent in stub.log))
    assert not any("," in sent for sent in stub.log)


def test_validators_in_several_requests(monkeypatch):
    """Lists of identifiers longer than one request are sent in parts."""
    monkeypatch.setattr("beaconframes.beacon_node.client.api.MAX_IDS", 3)
    api, stub = connect("electra")
    rows = api.validators(8, range(8))

    assert list(range(8)) == [row.index for row in rows]
    assert 3 == stub.counts["/eth/v1/beacon/states/{state_id}/validators"]


@pytest.mark.parametrize("fault", ["empty-data", "missing-ids"])
def test_missing_validator_is_an_error(fault):
    """Planted quirk: an answer without a requested validator is an error that names it."""
    api, _ = connect(faults=[fault])

    with pytest.raises(IntegrityError, match=r"'\d'\] were requested, and are not"):
        api.validators(96, [3, 4])


def test_validator_that_does_not_exist_yet_is_no_error():
    """Validators 70 to 72 of the Electra chain are made by deposits of epochs 4 to 6."""
    api, stub = connect("electra")

    assert [69] == [row.index for row in api.validators(8, [69, 70, 999])]
    assert [69, 70] == [row.index for row in api.validators(399, [69, 70, 999])]
    assert 3 == stub.counts["/eth/v1/beacon/states/{state_id}/validators"]


def test_committees_of_both_labels():
    """Planted quirk: wrong labels are counted; the order of the committees is right."""
    right, wrong = connect()[0], connect(faults=["committee-labels"])[0]
    expected, found = right.committees(96, 12), wrong.committees(96, 12)

    assert expected.validators.tolist() == found.validators.tolist()
    assert expected.bounds.tolist() == found.bounds.tolist()
    assert ({}, {"committee-labels": 1}) == (right.corrected, wrong.corrected)
    assert 32 == len(right.sync_committee(96, 12))


def test_ssz_state_is_that_of_the_slot():
    """The bytes of a state come as they are; slot and genesis in them are compared."""
    api, _ = connect(faults=["ssz-without-version"])
    state = api.state(95)

    assert isinstance(state, bytes)
    assert (1795326844, 95) == tuple(np.frombuffer(state[:48], "<u8")[[0, 5]].tolist())


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("state-of-another-slot", IntegrityError, "slot 95 was requested.* for slot 103"),
        ("old-genesis", IntegrityError, "genesis time 1795326844, the node states 1795330444"),
        ("json-instead-of-ssz", ProtocolError, "answered JSON where SSZ was requested"),
        ("pruned-states", NotFound, "404.*start Lodestar with --serveHistoricalState"),
    ],
)
def test_states_of_another_slot_or_chain_are_errors(fault, kind, words):
    """Planted quirks: a state of another slot or chain, or in JSON, is an error."""
    api, _ = connect(faults=[fault])
    api.version()

    with pytest.raises(kind, match=words) as caught:
        api.state(95)
    assert caught.value.endpoint.endswith("/eth/v2/debug/beacon/states/{state_id}")


class Chunks(httpx.SyncByteStream):
    """A state of 16 MiB in chunks that are made when they are read."""

    def __init__(self, first):
        self.first, self.read = first, 0

    def __iter__(self):
        for number in range(256):
            self.read += 1
            yield self.first.ljust(2**16, b"\0") if number == 0 else bytes(2**16)


def connect_large(chunks):
    """Return the API of a node whose states are these chunks."""
    stub = BeaconNodeStub()

    def answer(request):
        if "debug" in request.url.path:
            return httpx.Response(200, stream=chunks)
        return stub.transport.handle_request(request)

    return BeaconApi(NodeSession("http://node.example", transport=httpx.MockTransport(answer)))


def test_large_state_is_in_memory_once():
    """The body grows in place; a check of the state reads its first chunk only."""
    chunks = Chunks(connect()[0].state(95)[:48])
    api = connect_large(chunks)
    api.state(95, first_bytes=48)
    assert 1 == chunks.read

    tracemalloc.start()
    state = api.state(95)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 2**24 == len(state)
    assert peak < 1.3 * len(state)


def test_state_of_a_skipped_slot():
    """Planted quirk: 404 and 500 of Lodestar are errors of the family, after two attempts."""
    api, stub = connect(faults=["skipped-slot-state"])

    with pytest.raises(ServerError, match=r"Expected value to be lte: 415"):
        api.state(415)
    with pytest.raises(NotFound, match=r"No state found for id '415'"):
        api.validators(415)
    assert 2 == stub.counts["/eth/v2/debug/beacon/states/{state_id}"]


def test_attestation_rewards_equal_those_recorded():
    """Rewards come as arrays, sorted, for the requested validators, and equal those recorded."""
    api, stub = connect()
    rewards = api.attestation_rewards(27, [5, 12, 2])
    expected = stub.recording.expected["attestation_rewards_of_duty_epoch"]["27"]

    assert [2, 5, 12] == rewards.validator_indices.tolist()
    assert min(rewards.inactivity) < 0
    for part in ("source", "target", "head", "inactivity"):
        assert [expected[part][index] for index in (2, 5, 12)] == getattr(rewards, part).tolist()
    assert 12 < len(api.attestation_rewards(27, None).source) <= 16


@pytest.mark.parametrize(
    ("fault", "recording", "epoch", "kind", "words"),
    [
        ("no-inactivity", "capella", 27, IntegrityError, "no inactivity penalty.*teku#7553"),
        ("positive-inactivity", "capella", 27, IntegrityError, "positive inactivity penalty"),
        ("duplicate-attestation-rewards", "capella", 27, IntegrityError, "has several rows"),
        ("empty-data", "capella", 27, IntegrityError, r"validators \[5, 15\] were requested"),
        ("no-attestation-rewards", "capella", 27, NotServed, "404.*Route not found"),
        ("rewards-fail-above-32-eth", "electra", 27, ServerError, "AttestationRewardsError"),
        ("rewards-need-last-slot", "capella", 50, NotFound, "404"),
        ("rewards-from-cached-states", "capella", 27, ServerError, "State is unavailable"),
        ("pruned-states", "capella", 27, NotFound, "No state found"),
    ],
)
def test_wrong_attestation_rewards(fault, recording, epoch, kind, words):
    """Planted quirks: rewards that cannot be right, or are refused, are errors with the reason."""
    api, _ = connect(recording, faults=[fault])

    with pytest.raises(kind, match=words):
        api.attestation_rewards(epoch, [5, 15])


def test_null_inclusion_delay_changes_nothing():
    """Planted quirk: the field is not read."""
    rewards = [
        connect(faults=faults)[0].attestation_rewards(27, None)
        for faults in ([], ["null-inclusion-delay"])
    ]

    assert all(np.array_equal(*both) for both in zip(*rewards, strict=True))


def test_sync_rewards_of_several_seats_are_added():
    """Planted quirk: Nimbus has a row for each seat; the sum is that of the other clients."""
    right, several = connect()[0], connect(faults=["duplicate-sync-rewards"])[0]

    assert right.sync_rewards(100) == several.sync_rewards(100)
    assert {"duplicate-sync-rewards": 1} == several.corrected
    assert [3] == list(right.sync_rewards(100, [3]))


def test_balance_is_no_sync_reward():
    """Planted quirk: Lodestar 1.38 answers the balance; the error names the issue."""
    api, _ = connect(faults=["sync-reward-is-balance"])

    with pytest.raises(IntegrityError, match=r"not a reward but a balance.*lodestar#8718"):
        api.sync_rewards(100)


def test_block_rewards_add_up():
    """The parts of a proposer's reward are its total; the quirk of one vote keeps that true."""
    api, wrong = connect()[0], connect(faults=["sync-aggregate-of-one-vote"])[0]
    rewards = api.block_rewards(100)

    assert rewards["total"] == rewards["attestations"] + rewards["sync_aggregate"]
    assert wrong.block_rewards(100)["sync_aggregate"] < rewards["sync_aggregate"]


def test_proposer_duties_of_another_epoch():
    """Duties must have exactly the slots of the epoch."""
    api, stub = connect()
    assert [*range(96, 104)] == [*api.proposer_duties(12)]

    stub.recording = replace_answer(stub.recording, ("proposer_duties", 13), 12)
    with pytest.raises(SchemaError, match=r"each slot of epoch 13: \[96, 97"):
        api.proposer_duties(13)


def replace_answer(recording, key, number):
    """Return a recording in which the answer of *key* is that of another epoch."""
    other = copy.copy(recording)
    other.ok = {**recording.ok, key: recording.ok[key[0], number]}
    return other


def test_answer_for_another_slot_is_an_error():
    """Planted quirk: the chain changes between two requests."""
    api, _ = connect(faults=["reorganization"])

    with pytest.raises(IntegrityError, match=r"slot 100 was requested.* slot 101"):
        api.block(100)
    with pytest.raises(IntegrityError, match=r"slot 100 was requested.* slot 101"):
        api.header(100)


class NullFields(Fault):
    """The fields of later forks are null in blocks, not absent."""

    LATER = ("execution_payload", "bls_to_execution_changes", "blob_kzg_commitments",
             "execution_requests")  # fmt: skip

    def change(self, node, request, answer):
        if answer.status != 200 or "/beacon/blocks/" not in request.route:
            return answer
        data = answer.data
        body = data["message"]["body"]
        for name in self.LATER:
            body.setdefault(name, None)
        if body["execution_payload"] is not None:
            body["execution_payload"].setdefault("withdrawals", None)
        return answer.with_data(data)


class UpperCase(Fault):
    """The hex digits of blocks and of queues are in upper case."""

    def change(self, node, request, answer):
        if answer.status != 200 or not re.search("/beacon/blocks/|/pending_", request.route):
            return answer
        texts = json.dumps(answer.data)
        upper = re.sub("0x[0-9a-f]+", lambda found: f"0x{found[0][2:].upper()}", texts)
        return answer.with_data(json.loads(upper))


@pytest.mark.parametrize("fault", [NullFields, UpperCase])
@pytest.mark.parametrize(("recording", "slot"), [("altair", 9), ("capella", 60), ("electra", 100)])
def test_a_block_written_in_another_way(recording, slot, fault):
    """A field that is null is absent, and hex has lower case, as roots are compared as texts."""
    plain, _ = connect(recording)
    other, _ = connect(recording, faults=[fault()])

    assert plain.block(slot) is not None
    assert plain.block(slot) == other.block(slot)


def test_a_queue_in_upper_case():
    """The signature of a balance that became a deposit is compared with a text in lower case."""
    plain, _ = connect("electra")
    other, _ = connect("electra", faults=[UpperCase()])

    assert plain.pending_deposits(16) == other.pending_deposits(16)


def test_an_event_in_upper_case(monkeypatch):
    """Roots of events are compared with those of blocks."""
    api, _ = connect()
    lines = ["event: head", 'data: {"slot": "9", "block": "0xAB"}', ""]
    monkeypatch.setattr(api.session, "stream_lines", lambda *_, **__: iter(lines))

    assert [("head", {"slot": "9", "block": "0xab"})] == list(api.events(["head"]))


HEAD = "/eth/v1/beacon/headers/{block_id}"
FINALITY = "/eth/v1/beacon/states/{state_id}/finality_checkpoints"
PROPOSERS = "/eth/v1/validator/duties/proposer/{epoch}"
VALIDATORS = "/eth/v1/beacon/states/{state_id}/validators"


class Planted(Fault):
    """The answers of a *route* have *value* at a place in their data."""

    def __init__(self, route, place, value):
        self.route, self.place, self.value = route, place, value

    def change(self, node, request, answer):
        if request.route != self.route:
            return answer
        if not self.place:
            return answer.with_data(self.value)
        data = answer.data
        target = data
        for name in self.place[:-1]:
            target = target[name]
        target[self.place[-1]] = self.value
        return answer.with_data(data)


@pytest.mark.parametrize(
    ("route", "place", "value", "error", "match"),
    [
        (HEAD, ("header", "message"), {}, SchemaError, r"missing required field `slot`"),
        (HEAD, ("header",), None, SchemaError, r"Expected `object`, got `null`"),
        (HEAD, ("header", "message", "slot"), "-1", SchemaError, r"Expected `int` >= 0"),
        (HEAD, ("header", "message", "slot"), str(2**63), IntegrityError, f"slot {2**63}"),
        (HEAD, ("header", "message", "slot"), "5", IntegrityError, "57 is finalized.* slot 5"),
        (FINALITY, ("finalized",), None, SchemaError, r"Expected `object`, got `null`"),
        (FINALITY, ("finalized", "epoch"), str(2**64 - 1), IntegrityError, "is finalized"),
    ],
)
def test_a_head_that_cannot_be_right_is_an_error(route, place, value, error, match):
    """The head ends up in a table of numbers, so that a wrong one was a bare ValueError."""
    api, _ = connect(faults=[Planted(route, place, value)])
    with pytest.raises(error, match=match):
        api.read_head()


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ((0, "index"), None),
        ((0, "balance"), "9" * 30),
        ((), {}),
        ((0, "index"), "x"),
        ((0, "validator"), []),
        ((0, "validator"), {}),
        ((0, "validator", "exit_epoch"), {}),
        ((0, "validator", "pubkey"), "0x12"),
    ],
)
def test_a_validator_with_an_invalid_field_is_an_error(place, value):
    """Chosen ones, and all of them as a replay reads them."""
    api, _ = connect(faults=[Planted(VALIDATORS, place, value)])
    for ids in ([0], None):
        with pytest.raises(SchemaError, match=r"the response of .* is invalid.*/validators[)]"):
            api.validators(104, ids)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([{"slot": "8", "validator_index": "x"}], "Expected `int`, got `str`.*validator_index"),
        ([{"slot": "8", "validator_index": "-1"}], "Expected `int` >= 0.*validator_index"),
        ([{"validator_index": "1"}], r"epoch 1: \[-1, 8, 9"),
        (
            [{"slot": str(n), "validator_index": str(n)} for n in (*range(8, 16), 8)]
            + [{"slot": "8", "validator_index": "1"}],
            r"each slot of epoch 1: \[8\]",
        ),
        ({}, "Expected `array`, got `object`"),
        ([{"slot": str(slot), "validator_index": "1"} for slot in range(8)], r"\[0, 1, 2"),
        ([{"slot": str(slot), "validator_index": "1"} for slot in range(9, 16)], r"\[8\]"),
        ([{"slot": str(n), "validator_index": "1"} for n in (0, *range(8, 16))], r"\[0\]"),
    ],
)
def test_proposer_duties_of_other_slots_are_an_error(data, message):
    api, _ = connect("electra", faults=[Planted(PROPOSERS, (), data)])
    with pytest.raises(SchemaError, match=f"{message}.*/validator/duties/proposer"):
        api.proposer_duties(1)


def test_a_sync_committee_of_another_size_is_an_error():
    route = "/eth/v1/beacon/states/{state_id}/sync_committees"
    api, _ = connect(faults=[Planted(route, ("validators",), ["7"] * 31)])
    with pytest.raises(SchemaError, match="has 31 validators, but SYNC_COMMITTEE_SIZE is 32"):
        api.sync_committee(96, 12)


@pytest.mark.parametrize("ids", [[0], None])
def test_a_text_is_a_flag(ids):
    """The text "false" counted as slashed, as each text that is not empty."""
    place = (0, "validator", "slashed")
    for text, expected in (("false", False), ("true", True)):
        api, _ = connect(faults=[Planted(VALIDATORS, place, text)])
        assert expected == build_registry(api.validators(104, ids)).slashed[0]


def test_pending_queues_exist_since_electra():
    """The queues of deposits and of consolidations."""
    api, _ = connect("electra")

    assert 1 <= len(api.pending_deposits(16))
    assert [] == api.pending_consolidations(16)


def test_node_that_starts_is_retried():
    """503 is retried, as for the explorer's API; requests are counted with retries."""
    api, _ = connect(faults=[Restarting(times=2)])

    assert api.version().startswith("Lodestar")
    assert (3, 1) == (
        api.request_count,
        sum(each.requests for each in api.session.measured.values()),
    )


@pytest.mark.parametrize(
    ("client", "words"),
    [
        ("lighthouse", "NOT_FOUND: beacon state at slot 95.*--reconstruct-historic-states"),
        ("prysm", "State not found.*--enable-archive"),
        ("teku", "Not found.*--data-storage-mode=archive"),
        ("nimbus", "Could not get requested state.*--history=archive"),
        ("lodestar", "No state found.*--serveHistoricalState"),
        ("grandine", "--archive-storage"),
    ],
)
def test_error_names_the_flag_of_the_client(client, words):
    """A node without old states: the error quotes the client and names its flag."""
    api, _ = connect(faults=["pruned-states"], client=client)
    api.version()

    with pytest.raises(NotFound, match=words) as caught:
        api.validators(95, [1])
    assert api.version().split("/x86")[0] in str(caught.value)


def test_events_in_a_stream():
    """Topics are repeated, events come as the head moves, and stop= ends the stream."""
    stop = threading.Event()
    with BeaconNodeStub(head=200, events_since=196) as stub:
        api = BeaconApi(NodeSession(stub.url))
        events = api.events(["block", "finalized_checkpoint"], stop=stop)
        before = [event.data["slot"] for event in itertools.islice(events, 3)]
        stub.advance(204)
        after = next(events)
        stop.set()
        with pytest.raises(ConnectionFailed, match=r"stopped"):
            list(events)
        api.close()

    assert ["197", "198", "199"] == before
    assert ("block", "201") == (after.topic, after.data["slot"])
    assert ["GET /eth/v1/events?topics=block&topics=finalized_checkpoint"] == stub.log


def test_orphan_and_its_events():
    """A block that the chain leaves behind has a valid root, and is served by its root only."""
    stub = BeaconNodeStub("electra", head=130, events_since=0)
    missed = next(slot for slot in range(100, 130) if slot not in stub.recording.block_slots)
    root = stub.add_orphan(missed)
    api = BeaconApi(NodeSession("http://node.example", transport=stub.transport))
    topics = ["block", "chain_reorg", "finalized_checkpoint"]
    events = list(read_events(api, topics))
    header = json.loads(stub.recording.ok["header", 100])["data"]

    assert header["root"] == compute_header_root(header["header"]["message"])
    assert None is api.block(missed)
    assert str(missed) == api.block(root)["message"]["slot"]
    assert False is api.header(root)["canonical"]
    assert ["chain_reorg"] == [event.topic for event in events if "old_head_block" in event.data]
    finalized = [int(event.data["epoch"]) for event in events if "epoch" in event.data
                 and event.topic == "finalized_checkpoint"]  # fmt: skip
    assert finalized == sorted(set(finalized))
    assert 130 // 8 - 2 == finalized[-1]


def read_events(api, topics):
    """Yield the events of a stream that ends."""
    with contextlib.suppress(ConnectionFailed):
        yield from api.events(topics)


def test_execution_calls_are_one_batch():
    """The execution node answers a batch in any order; its errors are ours."""
    with BeaconNodeStub() as stub:
        session = NodeSession(stub.execution_url)
        block, receipts = session.call(
            [("eth_getBlockByNumber", ["0x15", True]), ("eth_getBlockReceipts", ["0x15"])]
        )
        with pytest.raises(NotServed, match=r"the method eth_foo does not exist"):
            session.call([("eth_foo", [])])
        session.close()

    assert block["hash"] == receipts[0]["blockHash"]
    assert 2 == session.request_count


def test_loopback_equals_the_transport():
    """A state in slow chunks over a socket has the bytes of the direct answer."""
    with BeaconNodeStub(faults=[FAULTS["slow-states"](pause=0.001)]) as stub:
        api = BeaconApi(NodeSession(stub.url))
        assert api.state(95) == connect()[0].state(95)
        assert "19" == api.block(19)["message"]["slot"]
        api.close()


def test_each_fault_is_a_known_quirk():
    """Every quirk that the documentation lists is planted by the stub."""
    page = PAGE.read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([a-z0-9-]+)` \|", page, re.MULTILINE))
    made_up = {
        "no-post-ids", "missing-ids", "pruned-duties", "no-attestation-rewards", "truncated-ssz",
        "duplicate-attestation-rewards", "json-instead-of-ssz", "state-of-another-slot",
        "restarting", "no-old-blocks", "debug-forbidden", "zero-inactivity",
        "balances-of-another-fork",
    }  # fmt: skip

    assert listed | made_up == set(FAULTS)
    assert set(QUIRKS) < listed
    assert all(fault.__doc__ for fault in FAULTS.values())
