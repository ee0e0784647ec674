"""Amounts of chosen validators from the rewards routes, reconciled with their balances."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace

import pytest

import beaconframes as bf
from beaconframes.beacon_node.amounts.epoch_amounts import Deposit
from beaconframes.beacon_node.amounts.replay import ReplayAmounts
from beaconframes.beacon_node.amounts.routes import RouteAmounts
from beaconframes.beacon_node.amounts.states import StateAmounts
from beaconframes.beacon_node.chain.reader import ChainReader
from beaconframes.beacon_node.client.api import BeaconApi
from beaconframes.beacon_node.client.session import NodeSession
from beaconframes.beacon_node.index.coverage import EpochTask
from beaconframes.beacon_node.index.epoch_builder import build_epoch
from beaconframes.beacon_node.tables import REWARD_TABLES
from beaconframes.consensus.epoch_moves import Move
from beaconframes.consensus.slot_income import SlotIncome
from beaconframes.consensus.spec import Spec
from beaconframes.errors import BeaconframesError, NotServed, ServerError, UnreconciledRows

from ..support.beacon_node_faults import Fault, is_state
from ..support.beacon_node_stub import BeaconNodeStub, read_recording
from ..support.node_tables import build_reward_tables

PARTS = ("source", "target", "head", "inactivity")
ELECTRA = (2, 10, 11, 13, 15, 16, 60, 61, 63, 67, 70, 71, 72)
"""Validators with deposits, exits, slashings, consolidations, switches; three are new."""
IN_BLOCKS = {
    "attestation_inclusion": "proposer_attestations",
    "sync_committee": "sync",
    "sync_inclusion": "sync",
    "withdrawal": "withdrawals",
    "switch_to_compounding": "switch_to_compounding",
    # A slashing has a penalty and a reward; the expected values name both by the slashing.
    "proposer_slashing_inclusion": "slashing",
    "attester_slashing_inclusion": "slashing",
    "slashing_penalty": "slashing",
}
BETWEEN_EPOCHS = {
    "slashing_correlation": "slashing_correlation",
    "pending_deposit": "pending_deposits",
    "pending_consolidation": "pending_consolidations",
    "fork_upgrade": "fork_upgrade",
}


@contextmanager
def open_amounts(name, source=RouteAmounts, faults=()):
    """Open a source of amounts of a recorded chain."""
    node = BeaconNodeStub(name, faults=faults)
    api = BeaconApi(NodeSession("http://node.test", transport=node.transport))
    api.version()
    reader = ChainReader(
        api, api.chain_spec, head_slot=node.head, has_states=source is StateAmounts
    )
    yield node, source(reader)
    reader.close()
    api.close()


def read_chain_spec(name):
    """Return the spec of a recorded chain."""
    return Spec.parse(read_recording(name).spec, read_recording(name).genesis)


@functools.cache
def read_epochs(name, chosen, epochs):
    """Return the amounts of some epochs, read once for all tests."""
    with open_amounts(name) as (node, amounts):
        found = {epoch: amounts.read(epoch, chosen) for epoch in epochs}
        assert not node.unrecorded
        assert not any("/debug/" in route for route in node.counts)
        return found


def check_amounts(name, chosen, epochs):
    """Compare all amounts of epochs with the expected values of a chain."""
    expected, runs = read_recording(name).expected, read_epochs(name, chosen, epochs)
    last_slot = read_recording(name).last_slot
    slot_income, moves = Counter(), Counter()
    for epoch, amounts in runs.items():
        assert not amounts.unexplained
        assert amounts.verified_until == min(epoch + 2, last_slot // 8)
        balances = expected["balance_first_slot_post_block"][str(epoch)]
        rewards = expected["attestation_rewards_of_duty_epoch"][str(epoch)]
        for place, index in enumerate(amounts.validators.tolist()):
            found = {part: int(getattr(amounts, part)[place]) for part in PARTS}
            cells = {part: rewards[part][index] if index < len(rewards[part]) else 0
                     for part in PARTS}  # fmt: skip
            assert found == cells, (epoch, index)
            assert amounts.has_balance[place] == (index < len(balances))
            if index < len(balances):
                assert amounts.balances[place] == balances[index]
        for slot, kind, index, gwei in amounts.slot_income:
            slot_income[slot, IN_BLOCKS[kind], index] += gwei
        for number, kind, index, gwei in amounts.moves:
            assert number == epoch
            moves[epoch, BETWEEN_EPOCHS[kind], index] += gwei
    assert slot_income == find_slot_income(expected, chosen, epochs)
    assert moves == find_moves(expected, chosen, epochs)


def find_slot_income(expected, chosen, epochs):
    sums = Counter()
    for slot, part, index, gwei in expected["slot_income"]:
        if index in chosen and slot // 8 in epochs:
            sums[slot, "slashing" if "slashing" in part else part, index] += gwei
    return sums


def find_moves(expected, chosen, epochs):
    rows = [
        *expected.get("epoch_end_moves", ()),
        *((slot // 8 - 1, "fork_upgrade", index, gwei)
          for slot, index, gwei in expected.get("fork_upgrade_moves", ())),
        *((int(epoch), "slashing_correlation", int(index), gwei)
          for epoch, row in expected.get("correlation_penalties_at_end_of_epoch", {}).items()
          for index, gwei in row.items()),
    ]  # fmt: skip
    sums = Counter()
    for epoch, part, index, gwei in rows:
        if index in chosen and epoch in epochs:
            sums[epoch, part, index] += gwei
    return sums


def test_electra_chain_is_explained_to_the_gwei():
    """The fork, deposits, a switch, consolidation requests, slashings."""
    check_amounts("electra", ELECTRA, range(1, 13))


@pytest.mark.more
@pytest.mark.parametrize("epochs", [range(17, 19), range(43, 45)])
def test_later_epochs_of_the_electra_chain_are_explained(epochs):
    """Consolidations; correlation penalties."""
    check_amounts("electra", ELECTRA, epochs)


@pytest.mark.parametrize("epochs", [range(25, 27), range(45, 47)])
def test_capella_chain_is_explained_to_the_gwei(epochs):
    """Full withdrawals and a leak; correlation penalties."""
    check_amounts("capella", (5, 7, 8), epochs)


@pytest.mark.more
@pytest.mark.parametrize(
    ("name", "count", "epochs"),
    [
        pytest.param("capella", 16, range(59), marks=pytest.mark.long),
        pytest.param("electra", 73, range(48), marks=pytest.mark.long),
        ("forks", 108, range(70)),
    ],
)
def test_all_validators_of_a_chain_are_explained(name, count, epochs):
    """All duty epochs of the chains."""
    check_amounts(name, tuple(range(count)), epochs)


def check_frames(name, chosen, epochs, read):
    """Compare the frames of routes with those of states; *read* are the epochs to read."""
    with open_amounts(name, StateAmounts) as (_, states):
        for epoch in epochs:
            routes = read_epochs(name, chosen, read)[epoch]
            found = build_reward_tables(routes, states.spec.chain)
            expected = build_reward_tables(states.read(epoch, chosen), states.spec.chain)
            assert found.keys() == expected.keys()
            if name == "capella":  # The node does not state what timely votes earn.
                del expected["missed_reward_events"]
            for table, rows in expected.items():
                order = rows.columns
                assert found[table].sort(order).equals(rows.sort(order)), (epoch, table)


def test_a_consolidation_moves_no_more_than_the_effective_balance():
    """Validator 93 has 132.03 ETH and an effective balance of 132 ETH at the end of epoch 17."""
    check_amounts("forks", (93, 94), range(16, 18))


def test_a_consolidation_of_a_slashed_validator_moves_nothing():
    """That of 20 into 94 leaves the queue at the end of epoch 8, with the deposit of 101."""
    moves = read_recording("forks").expected["epoch_end_moves"]
    assert (20, "pending_consolidations") not in {(index, part) for _, part, index, _ in moves}
    check_amounts("forks", (20, 94, 101), range(8, 10))


def test_missed_proposals_belong_to_the_epoch_of_their_slot():
    """The block of the first slot is read with those of the epoch before it."""
    missed = read_recording("electra").expected["missed_slots"]
    assert {slot % 8 for slot, _ in missed if slot // 8 in (9, 10, 12)} >= {0}
    with open_amounts("electra") as (_, amounts):
        for epoch in (9, 10, 11, 12):
            expected = Counter(index for slot, index in missed if slot // 8 == epoch)
            assert +Counter(amounts.read(epoch, None).proposals_missed) == expected


def test_moves_of_one_validator_in_one_slot_are_one_transfer():
    """A switch in the last block of epoch 10, and two moves at its end."""
    amounts = replace(
        read_epochs("electra", ELECTRA, range(1, 13))[10],
        slot_income=[SlotIncome(87, "switch_to_compounding", 60, -7)],
        moves=[
            Move(10, "pending_consolidation", 60, 12),
            Move(10, "fork_upgrade", 60, -1),
            Move(10, "slashing_correlation", 60, -100),
        ],
    )
    rows = build_reward_tables(amounts, read_chain_spec("electra").chain)["transfer_events"]
    assert rows.select("slot", "validator_index", "amount_gwei").rows() == [(87, 60, 4)]


def test_deposits_of_one_validator_in_one_slot_are_counted():
    deposits = [Deposit(87, 60, 5), Deposit(87, 61, 6), Deposit(87, 60, 7), Deposit(88, 60, 8)]
    amounts = replace(read_epochs("electra", ELECTRA, range(1, 13))[10], deposits=deposits)
    rows = build_reward_tables(amounts, read_chain_spec("electra").chain)["deposit_events"]
    assert rows.select("slot", "validator_index", "deposit_index", "amount_gwei").rows() == [
        (87, 60, 0, 5), (87, 60, 1, 7), (87, 61, 0, 6), (88, 60, 0, 8),
    ]  # fmt: skip


class Withdrawable(Fault):
    """A validator is withdrawable from another epoch on, in states and in lists of validators."""

    def __init__(self, index, epoch):
        self.index, self.epoch = index, epoch

    def change(self, node, request, answer):
        if answer.status != 200 or not is_state(request):
            return answer
        if "/debug/" in request.route:
            rows = json.loads(node.recording.validators(0))["data"]
            key = bytes.fromhex(rows[self.index]["validator"]["pubkey"][2:])
            # After key, credentials, effective balance, slashed, and three other epochs.
            place = answer.body.index(key) + 113
            epoch = self.epoch.to_bytes(8, "little")
            answer.body = answer.body[:place] + epoch + answer.body[place + 8 :]
        elif request.route.endswith("/validators"):
            rows = answer.data
            for row in rows:
                if row["index"] == str(self.index):
                    row["validator"]["withdrawable_epoch"] = str(self.epoch)
            return answer.with_data(rows)
        return answer


@pytest.mark.more
@pytest.mark.parametrize("source", [StateAmounts, RouteAmounts])
@pytest.mark.parametrize(("withdrawable", "has_duty"), [(40, False), (41, False), (42, True)])
def test_slashed_validators_have_duties_until_they_are_withdrawable(source, withdrawable, has_duty):
    """Slashed in epoch 11: the transition at the end of epoch 41 pays the duties of epoch 40."""
    with open_amounts("electra", source, [Withdrawable(15, withdrawable)]) as (_, amounts):
        found = amounts.read(40, [15])
        income = build_reward_tables(found, amounts.spec.chain)["income_history"]
    assert found.is_rewarded.tolist() == [has_duty]
    assert income.height == has_duty


@pytest.mark.parametrize("source", [StateAmounts, RouteAmounts, ReplayAmounts])
def test_genesis_is_no_missed_proposal(source):
    """Some clients do not have its block."""

    def refuse(node, request):
        is_genesis = request.args.get("block_id") == "0"
        return node.no_block("0") if is_genesis else None

    with open_amounts("capella", source, [Answers(refuse)]) as (_, amounts):
        missed = amounts.read(0, range(16)).proposals_missed
    has_block = [slot for slot in read_recording("capella").block_slots if slot < 8]
    assert sum(missed.values()) == 8 - len(has_block)


def test_frames_equal_those_of_states():
    check_frames("electra", ELECTRA, range(9, 11), range(1, 13))


@pytest.mark.more
@pytest.mark.parametrize(
    ("name", "chosen"),
    [("electra", ELECTRA), pytest.param("capella", tuple(range(16)), marks=pytest.mark.long)],
)
def test_frames_of_a_whole_chain_equal_those_of_states(name, chosen):
    check_frames(name, chosen, range(48), range(48))


def test_missed_rewards_are_unknown_without_ideal_rewards():
    """The node of the Capella chain has an empty list of them: null, not 0."""
    with open_amounts("capella") as (_, amounts):
        tables = build_reward_tables(amounts.read(2, [0, 15]), amounts.spec.chain)
    (row,) = tables["missed_reward_events"].rows(named=True)
    assert row["validator_index"] == 15
    assert [row[f"attestation_{vote}_missed_gwei"] for vote in PARTS[:3]] == [None] * 3


def test_an_epoch_needs_three_requests():
    """Of validators without proposals, seats and withdrawals; a period needs one more."""
    with open_amounts("electra") as (node, amounts):
        amounts.read(10, [3])
        counts = [node.counts.total()]
        for epoch in range(11, 19):
            amounts.read(epoch, [3])
            counts.append(node.counts.total())
    needed = [after - before for before, after in itertools.pairwise(counts)]
    assert max(needed) == 4
    assert sum(needed) == 3 * 8 + 1


def test_sync_committee_rewards_are_requested_for_members_only():
    with open_amounts("electra") as (node, amounts):
        committee = read_recording("electra").expected["sync_committee"]
        index = next(v for v in committee["2"] if v not in committee["1"])
        amounts.read(12, [index])
        assert not any("sync_committee/" in path for path in node.log)
        amounts.read(17, [index])
        slots = {int(path.rsplit("/", 1)[1]) for path in node.log if "sync_committee/" in path}
        assert slots
        assert min(slots) >= 16 * 8


def test_validators_that_do_not_exist_have_no_rows():
    with open_amounts("electra") as (_, amounts):
        found = amounts.read(3, [5, 70, 999])
    assert found.validators.tolist() == [5]


def test_a_missing_state_of_a_skipped_first_slot_is_named():
    """Within an epoch the state of the last block is the same; at its first slot it is not."""
    with (
        open_amounts("electra", faults=["skipped-slot-state"]) as (_, amounts),
        pytest.raises(NotServed, match=r"epoch 3 starts with slot 24, which has no block"),
    ):
        amounts.read(2, [3])


def test_an_epoch_without_duties_requests_no_rewards():
    """An empty list of ids would request the rewards of all validators."""
    with open_amounts("electra") as (node, amounts):
        found = amounts.read(30, [2])
        assert not found.is_rewarded.any()
        assert not node.counts["/eth/v1/beacon/rewards/attestations/{epoch}"]
        assert found.verified_until == 32
        assert not found.unexplained


class Answers:
    """A fault that replaces the answers to some requests."""

    def __init__(self, refuse):
        self.refuse = refuse

    def change(self, node, request, answer):
        return answer


FAULTY = range(27, 30)
"""Epochs of a leak: validator 7, which is offline, has inactivity penalties."""
CHOSEN = (0, 2, 7)

FOUND_BY_BALANCES = [
    "rewards-one-epoch-off",
    "sync-aggregate-of-one-vote",
    "zero-inactivity",
    "balances-of-another-fork",
]
REFUSED = [
    "sync-reward-is-balance",
    "no-inactivity",
    "positive-inactivity",
    "duplicate-attestation-rewards",
    "no-attestation-rewards",
    "empty-data",
    "reorganization",
]


def build_with_fault(fault):
    """Return the tables of the epochs that end without an error, and the errors."""
    built, errors = {}, []
    with open_amounts("capella", faults=[fault] if fault else []) as (_, amounts):
        for epoch in FAULTY:
            try:
                result = build_epoch(
                    amounts.reader, amounts, EpochTask(epoch, REWARD_TABLES, CHOSEN)
                )
            except BeaconframesError as error:
                errors.append((epoch, str(error)))
            else:
                built[epoch] = result
    return built, errors


def find_wrong_epochs(built):
    """Return the epochs whose stored rows differ from those of a node without faults."""
    right, _ = build_faultless()
    return {
        epoch
        for epoch, result in built.items()
        if any(
            not result.frames[name].equals(right[epoch].frames[name])
            for name in REWARD_TABLES
            if name != "unexplained_changes"
        )
    }


def find_unexplained_epochs(built):
    """Return the epochs with a change that is unexplained."""
    return {epoch for epoch, result in built.items() if result.frames["unexplained_changes"].height}


@functools.cache
def build_faultless():
    return build_with_fault(None)


def test_epochs_of_a_node_without_faults_are_explained():
    built, errors = build_faultless()
    assert set(built) == set(FAULTY)
    assert not errors
    assert not find_unexplained_epochs(built)


@pytest.mark.more
@pytest.mark.parametrize("fault", FOUND_BY_BALANCES)
def test_wrong_rewards_are_found_by_the_balances(fault):
    """The answers look right: no wrong value is stored in an epoch that counts as explained."""
    built, errors = build_with_fault(fault)
    assert not errors
    wrong = find_wrong_epochs(built)
    assert wrong
    assert wrong <= find_unexplained_epochs(built)


@pytest.mark.parametrize("fault", REFUSED)
def test_impossible_answers_name_client_and_epoch(fault):
    built, errors = build_with_fault(fault)
    assert errors
    assert not find_wrong_epochs(built) - find_unexplained_epochs(built)
    for epoch, text in errors:
        assert "Lodestar" in text
        named = [int(number) for number in re.findall(r"\bepoch (\d+)", text)]
        assert epoch - 2 <= named[0] <= epoch + 2


class CancelingErrors:
    """A fault: parts of a validator's rewards for an epoch are wrong, and their sum is right."""

    def __init__(self, epoch, index, errors):
        self.epoch, self.index, self.errors = epoch, index, errors
        assert not sum(errors.values())

    def refuse(self, node, request):
        return None

    def change(self, node, request, answer):
        if "/attestations/" not in request.route or request.args["epoch"] != str(self.epoch):
            return answer
        found = answer.data
        for row in found["total_rewards"]:
            if row["validator_index"] == str(self.index):
                row |= {part: str(int(row[part]) + gwei) for part, gwei in self.errors.items()}
        return answer.with_data(found)


IDEAL = {"source": 1, "target": -1}


@pytest.mark.more
@pytest.mark.parametrize(
    ("name", "epoch", "index", "errors", "chosen"),
    [
        pytest.param("electra", 10, 3, IDEAL, (3,), id="not the ideal rewards"),
        pytest.param(
            "electra",
            10,
            61,
            {"head": 1, "target": -1},
            (61,),
            id="compounding",
            marks=pytest.mark.more,
        ),
        pytest.param("electra", 36, 0, {"source": 1, "target": -1}, (0,), id="penalties"),
        pytest.param(
            "electra",
            36,
            0,
            {"source": 3, "target": -3},
            (0, 1),
            id="of one of two",
            marks=pytest.mark.more,
        ),
        pytest.param(
            "electra",
            36,
            0,
            {"source": -91, "target": 91},
            (0,),
            id="of other bases",
            marks=pytest.mark.more,
        ),
        pytest.param(
            "electra",
            36,
            0,
            {"target": 1, "inactivity": -1},
            (0,),
            id="inactivity",
            marks=pytest.mark.more,
        ),
        pytest.param("electra", 36, 4, {"source": -300_000, "head": 300_000}, (4,), id="in a leak"),
        pytest.param(
            "electra",
            36,
            0,
            {"target": 1, "head": -1},
            (0,),
            id="negative head",
            marks=pytest.mark.more,
        ),
        pytest.param("capella", 10, 3, IDEAL, None, id="ideal rewards from all validators"),
        pytest.param("capella", 28, 7, {"source": 1, "target": -1}, None, id="base reward"),
    ],
)
def test_errors_that_cancel_within_a_validator_are_unexplained(name, epoch, index, errors, chosen):
    """The sums of the parts agree with the balances: no part may be what no vote can have."""
    for faults, expected in ([], set()), ([CancelingErrors(epoch, index, errors)], {epoch + 2}):
        with open_amounts(name, faults=faults) as (_, amounts):
            found = amounts.read(epoch, chosen)
        assert {change.epoch for change in found.unexplained} == expected
        if expected and chosen != (0, 1):
            (change,) = found.unexplained
            assert change.validators.tolist() == [index]
            place = found.validators.tolist().index(index)
            parts = sum(int(getattr(found, part)[place]) for part in PARTS)
            assert (change.change - change.explained).tolist() == [parts]


@pytest.mark.more
@pytest.mark.parametrize("validators", [None, pytest.param([2, 3], marks=pytest.mark.long)])
def test_an_index_and_a_load_report_errors_that_cancel(validators, tmp_path):
    """Rewards for epoch 10 are in the change of epoch 12, which has income of epochs 10 to 12."""
    faults = ["debug-forbidden", CancelingErrors(10, 3, IDEAL)]
    with BeaconNodeStub("electra", faults=faults) as stub:
        verdicts = bf.index(stub.url, tmp_path / "a", validators=validators, since=9, until=13)
        status = dict(verdicts.select("epoch", "status").iter_rows())
        assert {epoch for epoch in status if status[epoch] != "explained"} == {10, 11, 12}
        with (
            bf.node(stub.url, store=False),
            pytest.warns(UnreconciledRows, match="of validator 3 in epoch 12 is unexplained"),
        ):
            bf.load_income_history([3], since=10, until=10)


def test_rows_of_one_validator_are_added_up():
    """Nimbus has a row for each seat; the values are right, and explained."""
    built, errors = build_with_fault("duplicate-sync-rewards")
    assert not errors
    assert not find_wrong_epochs(built) | find_unexplained_epochs(built)


@pytest.mark.parametrize(
    ("slot", "lost", "words"),
    [
        (227, "/rewards/sync_committee/", "slot 227 has a block, but the node no rewards.*Not fo"),
        (227, "/", "between the slots 226 and 228, but the block of slot 228 has the parent 0x"),
        (232, "/", "between the slots 230 and 234, but the block of slot 234 has the parent 0x"),
    ],
    ids=["sync rewards", "block", "own block"],
)
def test_a_lost_block_is_not_a_missed_slot(slot, lost, words):
    """A node that answers 404 for a block that the chain has: the seat's reward was missing."""

    def refuse(node, request):
        if lost in request.path and request.path.endswith(f"/{slot}"):
            return node.error(404, "Not found")
        return None

    built, errors = build_with_fault(Answers(refuse))
    assert not find_wrong_epochs(built)
    assert {27, 28, 29} == {epoch for epoch, _ in errors}
    assert all(re.search(words, text) for _, text in errors)


def test_missed_slots_are_confirmed_by_headers():
    """Both neighbors of each missed slot are requested once, also in long gaps."""
    with open_amounts("capella") as (node, amounts):
        amounts.read(28, [7])
    headers = [path.rsplit("/", 1)[1] for path in node.log if "/headers/" in path]
    assert len(headers) == len(set(headers))


@pytest.mark.parametrize(("status", "text"), [(404, "Route not found"), (400, "unsupported")])
def test_moves_of_unknown_queues_are_unexplained(status, text):
    """A node without the routes of pending queues: other epochs are explained."""
    fault = Answers(
        lambda node, request: node.error(status, text) if "pending" in request.route else None
    )
    with open_amounts("electra", faults=[fault]) as (_, amounts):
        deposits = amounts.read(3, [61]), amounts.read(12, [61])
    (change,) = deposits[0].unexplained[:1]
    assert change.epoch == 3
    assert (change.change - change.explained).tolist() == [8000839552]
    assert not deposits[1].unexplained


def test_a_failing_queue_is_an_error():
    """An error of the server may be temporary, and an index stores unexplained epochs for good."""
    fault = Answers(
        lambda node, request: node.error(500, "failed") if "pending" in request.route else None
    )
    with (
        open_amounts("electra", faults=[fault]) as (_, amounts),
        pytest.raises(ServerError, match="failed"),
    ):
        amounts.read(3, [61])


def test_correlation_penalties_without_the_time_of_a_slashing_are_unexplained():
    """A long exit queue: the time of withdrawal does not show when a validator was slashed."""

    class LongQueue:
        def refuse(self, node, request):
            return None

        def change(self, node, request, answer):
            if not request.route.endswith("/validators") or request.body:
                return answer
            rows = answer.data
            for row in rows:
                if row["validator"]["slashed"]:
                    later = int(row["validator"]["withdrawable_epoch"]) + 1
                    row["validator"]["withdrawable_epoch"] = str(later)
            return answer.with_data(rows)

    with open_amounts("capella", faults=[LongQueue()]) as (_, amounts):
        found = amounts.read(45, [8])
    assert not found.moves
    assert [change.epoch for change in found.unexplained] == [46]
    (unexplained,) = found.unexplained[0].change - found.unexplained[0].explained
    assert unexplained == -15_000_000_000


def test_validators_in_another_order_are_an_error():
    """A row of one validator with the record of another: its amounts would be those of both."""

    class Swapped:
        def refuse(self, node, request):
            return None

        def change(self, node, request, answer):
            if request.args.get("state_id") != "232" or not request.route.endswith("/validators"):
                return answer
            first, second, *others = answer.data
            first["validator"], second["validator"] = second["validator"], first["validator"]
            return answer.with_data([first, second, *others])

    built, errors = build_with_fault(Swapped())
    assert not built
    assert all("epoch 29: validator 0 has another public key" in text for _, text in errors)


def test_rewards_of_another_proposer_are_an_error():
    """After a reorganization, the slot has the block of another proposer."""

    class AnotherProposer:
        def refuse(self, node, request):
            return None

        def change(self, node, request, answer):
            if "/rewards/blocks/" not in request.route or answer.status != 200:
                return answer
            return answer.with_data({**answer.data, "proposer_index": "9"})

    _, errors = build_with_fault(AnotherProposer())
    assert errors
    assert all("the rewards of slot" in text and "of proposer 9" in text for _, text in errors)
