"""The faults of beacon nodes that `BeaconNodeStub` can plant, by name.

Each class names the client and the evidence. A fault sees each request before it is answered
(`refuse`) and each answer before it is sent (`change`). `FAULTS` has all of them by name; names of
quirks are those of docs/own-node-index.md.
"""

from __future__ import annotations

import json

FAULTS = {}


class Fault:
    """A fault: `refuse` answers instead of the node, `change` alters an answer."""

    name = ""

    def __init_subclass__(cls):
        if cls.name and cls.__module__ == __name__:  # Others are those of a single test.
            FAULTS[cls.name] = cls

    def refuse(self, node, request):
        """Return an answer that replaces the node's own, or None."""

    def change(self, node, request, answer):
        """Return the answer to send."""
        return answer


def is_state(request):
    """Return whether the request is for a state by its slot."""
    return request.args.get("state_id", "").isdigit()


class MoreBalance(Fault):
    """From a slot on, a validator has more *gwei*, in states and in lists of validators. No client.

    Each change in *at* is a validator, a slot and an amount.
    """

    def __init__(self, *at):
        self.at = at

    def change(self, node, request, answer):
        if answer.status != 200 or not is_state(request):
            return answer
        slot = int(request.args["state_id"])
        changes = [(index, gwei) for index, first, gwei in self.at if slot >= first]
        if "/debug/" in request.route:
            for index, gwei in changes:
                answer.body = add_balance(node, answer.body, index, gwei)
        elif request.route.endswith("/validators"):
            rows = answer.data
            for row in rows:
                gwei = sum(amount for index, amount in changes if row["index"] == str(index))
                row["balance"] = str(int(row["balance"]) + gwei)
            return answer.with_data(rows)
        return answer


def add_balance(node, ssz, index, gwei):
    """Return a state with *gwei* more in a balance."""
    # Offsets of lists: historical_roots, eth1_data_votes, validators, balances.
    roots = 64 * int(node.recording.spec["SLOTS_PER_HISTORICAL_ROOT"])
    offset = 176 + roots + 4 + 72 + 4 + 8 + 4
    place = int.from_bytes(ssz[offset : offset + 4], "little") + 8 * index
    balance = int.from_bytes(ssz[place : place + 8], "little") + gwei
    return ssz[:place] + balance.to_bytes(8, "little") + ssz[place + 8 :]


class CommitteeLabels(Fault):
    """Lodestar 1.5.1 labels the committees slot 0, index 0 to 7. Measured: the recordings."""

    name = "committee-labels"

    def change(self, node, request, answer):
        if not request.route.endswith("/committees") or answer.status != 200:
            return answer
        rows = answer.data
        return answer.with_data(
            [{**row, "slot": "0", "index": str(number)} for number, row in enumerate(rows)]
        )


class CommaIds(Fault):
    """Lodestar 1.5.1 answers `?id=3,4` with no validators, status 200. Measured."""

    name = "comma-ids"

    def change(self, node, request, answer):
        is_list = any(name == "id" and "," in text for name, text in request.query)
        return answer.with_data([]) if is_list and answer.status == 200 else answer


class NoPostIds(Fault):
    """Lodestar 1.5.1 and other clients of that time have `states/{}/validators` for GET only."""

    name = "no-post-ids"

    def refuse(self, node, request):
        if request.method == "POST" and request.route.endswith("/validators"):
            return node.no_route()
        return None


class EmptyData(Fault):
    """An empty list instead of the requested validators or rewards. beacon-APIs#449."""

    name = "empty-data"

    def change(self, node, request, answer):
        if answer.status != 200 or not (request.body or request.query):
            return answer
        if request.route.endswith("/validators"):
            return answer.with_data([])
        if "/rewards/attestations/" in request.route:
            return answer.with_data({**answer.data, "total_rewards": []})
        return answer


class MissingIds(Fault):
    """The last of several requested validators is missing in an old state, status 200."""

    name = "missing-ids"

    def change(self, node, request, answer):
        is_list = request.body and request.route.endswith("/validators") and is_state(request)
        if answer.status == 200 and is_list:
            return answer.with_data(answer.data[:-1])
        return answer


class SkippedSlotState(Fault):
    """Lodestar 1.5.1 answers 404 for the state of a skipped slot, and 500 for its SSZ state.

    Measured: `Expected value to be lte: 415 <= 392`.
    """

    name = "skipped-slot-state"

    def refuse(self, node, request):
        slot = int(request.args["state_id"]) if is_state(request) else 0
        if slot == 0 or slot > node.head or node.find_block(str(slot)) is not None:
            return None
        if "/debug/" in request.route:
            return node.error(500, f"Expected value to be lte: {slot} <= {slot - 1}")
        return node.no_state(slot)


class OldDuties(Fault):
    """Lodestar 1.5.1: duties of old epochs are 400, their committees 500. Measured."""

    name = "old-duties"

    def refuse(self, node, request):
        epoch = node.head // node.slots_per_epoch - 1
        if "/duties/" in request.route and int(request.args["epoch"]) < epoch:
            return node.error(400, "Requested epoch is too old")
        if request.route.endswith("/committees") and is_state(request):
            first = epoch * node.slots_per_epoch
            if int(request.args["state_id"]) < first:
                return node.error(500, "No shuffling found for the epoch")
        return None


class PrunedStates(Fault):
    """A node without its archive flag has the states of the last *epochs* only.

    sigp/lighthouse#4993, #6310: "missing state at slot"; the other clients in their own words.
    With *holes*, every other older epoch has a state, as of Lodestar 1.5.1 (study, section 2).
    """

    name = "pruned-states"

    def __init__(self, epochs=6, *, holes=False):
        self.epochs, self.holes = epochs, holes

    def refuse(self, node, request):
        size = node.slots_per_epoch
        oldest = node.head // size - self.epochs + 1
        if is_state(request):
            slot = int(request.args["state_id"])
        elif "/rewards/attestations/" in request.route:
            slot = (int(request.args["epoch"]) + 2) * size - 1
        elif "/rewards/" in request.route and request.args["block_id"].isdigit():
            slot = int(request.args["block_id"])
        else:
            return None
        epoch = slot // size
        if epoch >= oldest or (self.holes and epoch % 2 == 0):
            return None
        if "/rewards/" in request.route and node.client == "lighthouse":
            return node.error(404, f"missing state at slot {slot}")
        return node.no_state(slot)


class OldDutiesPruned(Fault):
    """A pruned node has no proposer duties of old epochs either: 404 or 500 of most clients."""

    name = "pruned-duties"

    def refuse(self, node, request):
        epoch = node.head // node.slots_per_epoch - 6
        if "/duties/" in request.route and int(request.args["epoch"]) < epoch:
            return node.error(404, "Could not get requested state")
        return None


class NoOldBlocks(Fault):
    """After checkpoint sync without backfill, a node of any client has no old blocks."""

    name = "no-old-blocks"

    def __init__(self, first_slot=200):
        self.first_slot = first_slot

    def refuse(self, node, request):
        slot = request.args.get("block_id", "")
        is_old = slot.isdigit() and int(slot) < self.first_slot
        return node.no_block(slot) if is_old and "/beacon/rewards/" not in request.route else None


class NoRewardsRoutes(Fault):
    """Lodestar 1.5.1 has no rewards routes at all. Measured; ChainSafe/lodestar#6484 adds them."""

    name = "no-rewards-routes"

    def refuse(self, node, request):
        return node.no_route() if "/rewards/" in request.route else None


class NoAttestationRewards(Fault):
    """Nimbus has no attestation rewards before August 2026. status-im/nimbus-eth2#7536, #8649."""

    name = "no-attestation-rewards"

    def refuse(self, node, request):
        return node.no_route() if "/rewards/attestations/" in request.route else None


class RewardsFromCachedStates(Fault):
    """Lodestar computes rewards from cached states only: `allowRegen: false`. lodestar#6484."""

    name = "rewards-from-cached-states"

    def refuse(self, node, request):
        if "/rewards/attestations/" not in request.route:
            return None
        slot = (int(request.args["epoch"]) + 2) * node.slots_per_epoch - 1
        if slot < node.head - 2 * node.slots_per_epoch:
            return node.error(500, f"State is unavailable for slot {slot}")
        return None


class SyncRewardIsBalance(Fault):
    """Lodestar 1.38 returns the balance in place of the sync reward. ChainSafe/lodestar#8718."""

    name = "sync-reward-is-balance"

    def change(self, node, request, answer):
        if "/rewards/sync_committee/" not in request.route or answer.status != 200:
            return answer
        return answer.with_data(
            [{**row, "reward": str(32_000_000_000 + int(row["reward"]))} for row in answer.data]
        )


class OldGenesis(Fault):
    """Lodestar 1.5.1 keeps old states after --reset with a new --genesisTime. Measured.

    The genesis route states the new time, the states still have the old one.
    """

    name = "old-genesis"

    def change(self, node, request, answer):
        if not request.route.endswith("/genesis"):
            return answer
        time = int(answer.data["genesis_time"]) + 3600
        return answer.with_data({**answer.data, "genesis_time": str(time)})


class RewardsFailAbove32Eth(Fault):
    """Lighthouse before 7.0: 500 once an effective balance is above 32 ETH. lighthouse#6818."""

    name = "rewards-fail-above-32-eth"

    def refuse(self, node, request):
        if "/rewards/attestations/" not in request.route:
            return None
        first = int(request.args["epoch"]) * node.slots_per_epoch
        if node.recording.fork(first) not in {"electra", "fulu"}:
            return None
        return node.error(500, "unexpected error: AttestationRewardsError")


class NoInactivity(Fault):
    """Lighthouse before 4.5 and Teku before 23.10 have no inactivity field.

    sigp/lighthouse#4512, Consensys/teku#7553.
    """

    name = "no-inactivity"

    def change(self, node, request, answer):
        return change_rows(request, answer, lambda row: row.pop("inactivity", None))


class ZeroInactivity(Fault):
    """The inactivity penalty is always 0: the field was added before the penalty was computed."""

    name = "zero-inactivity"

    def change(self, node, request, answer):
        return change_rows(request, answer, lambda row: row.update(inactivity="0"))


class PositiveInactivity(Fault):
    """A development version of Nimbus has the penalty without its sign. nimbus-eth2#8649."""

    name = "positive-inactivity"

    def change(self, node, request, answer):
        def change(row):
            row["inactivity"] = str(abs(int(row["inactivity"])))

        return change_rows(request, answer, change)


class NullInclusionDelay(Fault):
    """Since Altair, inclusion_delay is null, missing or "". beacon-APIs#340, Prysm#12480."""

    name = "null-inclusion-delay"

    def change(self, node, request, answer):
        return change_rows(request, answer, lambda row: row.update(inclusion_delay=None))


class DuplicateAttestationRewards(Fault):
    """Two rows of one validator in the attestation rewards (no client is known to do it)."""

    name = "duplicate-attestation-rewards"

    def change(self, node, request, answer):
        if "/rewards/attestations/" not in request.route or answer.status != 200:
            return answer
        rewards = answer.data
        rows = rewards["total_rewards"]
        return answer.with_data({**rewards, "total_rewards": [*rows, *rows[:1]]})


class RewardsNeedLastSlot(Fault):
    """Teku 2.36: 404 if the last slot of the next epoch has no block. Consensys/teku#7338."""

    name = "rewards-need-last-slot"

    def refuse(self, node, request):
        if "/rewards/attestations/" not in request.route:
            return None
        slot = (int(request.args["epoch"]) + 2) * node.slots_per_epoch - 1
        return node.error(404, "Not found") if node.find_block(str(slot)) is None else None


class RewardsOneEpochOff(Fault):
    """The first version of Prysm's route gives the rewards of the next epoch. prysm#12480."""

    name = "rewards-one-epoch-off"

    def change(self, node, request, answer):
        if "/rewards/attestations/" not in request.route or answer.status != 200:
            return answer
        number = int(request.args["epoch"]) + 1
        text = node.recording.ok.get(("rewards/attestations", number))
        ids = set(map(str, request.body or ()))
        if text is None:
            return answer
        rewards = json.loads(text)["data"]
        rows = [row for row in rewards["total_rewards"] if not ids or row["validator_index"] in ids]
        return answer.with_data({**rewards, "total_rewards": rows})


class SyncAggregateOfOneVote(Fault):
    """Nimbus before 25.1: the proposer's sync reward, and the total, are those of a single vote.

    status-im/nimbus-eth2#6810.
    """

    name = "sync-aggregate-of-one-vote"

    def change(self, node, request, answer):
        if "/rewards/blocks/" not in request.route or answer.status != 200:
            return answer
        rewards = answer.data
        slot = node.find_block(request.args["block_id"])
        block = json.loads(node.recording.ok["block", slot])["data"]["message"]["body"]
        bits = int(block["sync_aggregate"]["sync_committee_bits"], 16).bit_count()
        whole = int(rewards["sync_aggregate"])
        one = whole // max(bits, 1)
        total = int(rewards["total"]) - whole + one
        return answer.with_data({**rewards, "sync_aggregate": str(one), "total": str(total)})


class DuplicateSyncRewards(Fault):
    """Nimbus has a row for each seat, with a part of the reward. status-im/nimbus-eth2#7452."""

    name = "duplicate-sync-rewards"

    def change(self, node, request, answer):
        if "/rewards/sync_committee/" not in request.route or answer.status != 200:
            return answer
        rows = []
        for row in answer.data:
            reward = int(row["reward"])
            first = reward // 2
            rows += [{**row, "reward": str(part)} for part in (first, reward - first)]
        return answer.with_data(rows)


class SszWithoutVersion(Fault):
    """SSZ answers of Lodestar 1.5.1 have no Eth-Consensus-Version header. Measured."""

    name = "ssz-without-version"

    def change(self, node, request, answer):
        answer.headers.pop("Eth-Consensus-Version", None)
        return answer


class JsonInsteadOfSsz(Fault):
    """A proxy or an old client ignores the Accept header and answers JSON."""

    name = "json-instead-of-ssz"

    def refuse(self, node, request):
        if "/debug/" not in request.route:
            return None
        answer = node.error(404, "")
        answer.status, answer.body = 200, b'{"version":"capella","data":{}}'
        return answer


class TruncatedSsz(Fault):
    """Half of an SSZ state, with a matching Content-Length: of a proxy with a limit."""

    name = "truncated-ssz"

    def change(self, node, request, answer):
        if "/debug/" in request.route and answer.status == 200:
            answer.body = answer.body[: len(answer.body) // 2]
        return answer


class DebugForbidden(Fault):
    """Providers of hosted nodes refuse the debug routes with 403."""

    name = "debug-forbidden"

    def refuse(self, node, request):
        return node.error(403, "Forbidden") if "/debug/" in request.route else None


class CommaTopics(Fault):
    """`events?topics=a,b` never answers of Lodestar 1.5.1; repeated `topics=` does. Measured."""

    name = "comma-topics"

    def change(self, node, request, answer):
        if any(name == "topics" and "," in text for name, text in request.query):
            answer.topics = ("none",)
        return answer


class BalancesOfAnotherFork(Fault):
    """A reorganization between two requests: balances are those of the chain before it. Any client.

    Of one epoch only: the requests after it have the new chain.
    """

    name = "balances-of-another-fork"

    def __init__(self, epoch=29):
        self.epoch = epoch

    def change(self, node, request, answer):
        slot = str(self.epoch * node.slots_per_epoch)
        if not request.route.endswith("/validators") or request.args["state_id"] != slot:
            return answer
        return answer.with_data(
            [{**row, "balance": str(int(row["balance"]) - 8000)} for row in answer.data]
        )


class Slow(Fault):
    """A state of Prysm takes minutes: it is regenerated from a stored one. prysm#5851, #12180.

    The body arrives in chunks, with *pause* seconds before each.
    """

    name = "slow-states"

    def __init__(self, pause=0.02, chunk=4096):
        self.pause, self.chunk = pause, chunk

    def change(self, node, request, answer):
        if "/debug/" in request.route and answer.status == 200:
            answer.pause, answer.chunk = self.pause, self.chunk
        return answer


class Reorganization(Fault):
    """The chain changes between two requests: the answer is that for the next block. Any client."""

    name = "reorganization"

    def change(self, node, request, answer):
        block_id = request.args.get("block_id", "")
        if not block_id.isdigit() or answer.status != 200 or "/rewards/" in request.route:
            return answer
        later = [slot for slot in node.recording.block_slots if slot > int(block_id)]
        kind = "header" if "headers" in request.route else "block"
        answer.body = node.recording.ok[kind, later[0]].encode()
        return answer


class StateOfAnotherSlot(Fault):
    """The SSZ state of the next epoch: the state id was resolved after a reorganization."""

    name = "state-of-another-slot"

    def refuse(self, node, request):
        if "/debug/" in request.route and is_state(request):
            slot = int(request.args["state_id"]) + node.slots_per_epoch
            request.args["state_id"] = str(slot)


class Restarting(Fault):
    """The node answers 503 to its first *times* requests: it is starting or synchronizing."""

    name = "restarting"

    def __init__(self, times=2):
        self.times = times

    def refuse(self, node, request):
        self.times -= 1
        return node.error(503, "Beacon node is currently syncing") if self.times >= 0 else None


def change_rows(request, answer, change):
    """Return the attestation rewards with *change* applied to each row."""
    if "/rewards/attestations/" not in request.route or answer.status != 200:
        return answer
    rewards = answer.data
    for row in rewards["total_rewards"]:
        change(row)
    return answer.with_data(rewards)
