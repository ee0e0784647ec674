"""A synthetic chain of Electra, mainnet preset, from genesis: its states, blocks and payments.

Rewards and transitions follow the specification, so that all balances are explained. Validators
have outages, late votes and votes for other heads, miss proposals and sync duties; some are
slashed, exit or are new, and builders pay most blocks. `Writer` is where the chain goes.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from beaconframes.consensus.attestation_rewards import (
    AttestationRewards,
    Justification,
    update_inactivity_scores,
)
from beaconframes.consensus.block_root import compute_block_root
from beaconframes.consensus.epoch_moves import compute_transition
from beaconframes.consensus.participation import BlockParticipation
from beaconframes.consensus.rewards import TIMELY_TARGET
from beaconframes.consensus.shuffling import Committees, compute_committees, compute_proposers
from beaconframes.consensus.slot_income import EpochRegistry, compute_slot_income
from beaconframes.consensus.spec import Spec
from beaconframes.consensus.state import decode_state
from beaconframes.consensus.state_fields import PENDING_DEPOSIT, VALIDATOR

sys.path.append(str(Path(__file__).parent.parent))
from beacon_state import encode_state

if TYPE_CHECKING:
    from beaconframes.consensus.state import BeaconState

    from .server import Writer

ETH: Final = 10**9
FAR: Final = -1
"""2**64 - 1, an epoch that never comes, in arrays of signed integers."""
CONFIG: Final = {
    "PRESET_BASE": "mainnet",
    "CONFIG_NAME": "synthetic",
    "GENESIS_FORK_VERSION": "0x00000009",
    **{
        f"{fork}_FORK_{name}": value.format(number)
        for number, fork in enumerate(("ALTAIR", "BELLATRIX", "CAPELLA", "DENEB", "ELECTRA"), 1)
        for name, value in (("EPOCH", "0"), ("VERSION", "0x{:02}000009"))
    },
    "DEPOSIT_CONTRACT_ADDRESS": "0x" + "de" * 20,
}
GENESIS: Final = {
    "genesis_time": "1767225600",
    "genesis_validators_root": "0x" + hashlib.sha256(b"synthetic").hexdigest(),
    "genesis_fork_version": "0x00000009",
}
SPEC: Final = Spec.parse(CONFIG, GENESIS)
FIRST_BLOCK: Final = 20_000
"""The execution block of slot 0; earlier ones have the deposits of genesis."""
BASE_FEE: Final = 10**9
TRANSACTIONS: Final = 3
"""Transactions of a block, without the payment of a builder."""
BUILDER: Final = "0x" + "b0" * 20

MISSED, LATE, OTHER_HEAD = 0.003, 0.01, 0.01
"""Shares of votes that are missed, are late, and are for another head."""
MISSED_PROPOSALS = 0.008
DELAYS: Final = (2, 6, 20)
"""Slots after which late votes are included: the head, the source as well, and later."""
SLOW_SHARE: Final = 0.06
"""Share of late votes of one operator's validators."""
OPERATIONS_FROM: Final = 7
"""The slot of an epoch after which the first block has the operations of the epoch."""
SEED: Final = 11


class Aggregate(NamedTuple):
    """Votes that wait for a block."""

    due: int
    """The first slot whose block may include them."""
    voted: int
    bits: bytes
    is_other_head: bool


def build_hash(kind: str, number: int) -> bytes:
    """Return a root or hash that is made up."""
    return hashlib.sha256(f"{kind} {number}".encode()).digest()


def encode_hex(data: bytes) -> str:
    """Return hexadecimal text."""
    return "0x" + data.hex()


ROOT, SIGNATURE = encode_hex(bytes(32)), encode_hex(b"\x22" * 96)


class SyntheticChain:
    """A chain of so many validators that grows epoch by epoch."""

    def __init__(self, validators: int, epochs: int, writer: Writer) -> None:
        """Prepare the state of genesis and the outages of *epochs* epochs."""
        self.writer, self.epochs, self.count = writer, epochs, validators
        self.rng = np.random.default_rng(SEED)
        self.validators = self._build_genesis(validators)
        self.pending = np.zeros(0, PENDING_DEPOSIT)
        self.deposits = 0
        seats = self._draw_seats(), self._draw_seats()
        self.values = {
            "genesis_time": SPEC.genesis_time.to_bytes(8, "little"),
            "genesis_validators_root": SPEC.genesis_validators_root,
            "slot": bytes(8),
            "fork": bytes.fromhex("0500000905000009") + bytes(8),
            "validators": self.validators.tobytes(),
            "balances": (
                self.validators["effective_balance"] + self.rng.integers(0, 2 * 10**7, validators)
            ).tobytes(),
            "randao_mixes": self.rng.bytes(32 * SPEC.epochs_per_historical_vector),
            "previous_epoch_participation": bytes(validators),
            "current_epoch_participation": bytes(validators),
            "inactivity_scores": bytes(8 * validators),
            "current_sync_committee": seats[0],
            "next_sync_committee": seats[1],
        }
        self.block_roots = np.zeros((SPEC.slots_per_historical_root, 32), np.uint8)
        self.slashings = np.zeros(SPEC.epochs_per_slashings_vector, np.int64)
        self.last_root = build_hash("block", 0)
        self.withdrawal_index = self.sweep_index = 0
        self.waiting: list[Aggregate] = []
        self.roots: dict[int, bytes] = {}
        self.offline = self._draw_outages(validators, epochs)
        self.is_slow = np.zeros(validators, np.bool_)
        self.is_slow[validators // 2 : validators // 2 + validators // 10] = True
        self._plan_events(validators, epochs)
        for number in range(validators):
            self._add_deposit(number, FIRST_BLOCK - 1 - number % 100, 32 * ETH)

    # What happens when.

    def _build_genesis(self, count: int) -> np.ndarray:
        """Return the registry of genesis: 3 % without an address, 4 % with compounding."""
        validators = np.zeros(count, VALIDATOR)
        validators["pubkey"] = self.rng.integers(0, 256, (count, 48), np.uint8)
        validators["effective_balance"] = 32 * ETH
        kinds = self.rng.choice(3, count, p=[0.03, 0.93, 0.04])
        credentials = self.rng.integers(0, 256, (count, 32), np.uint8)
        credentials[:, 0] = kinds
        credentials[kinds > 0, 1:12] = 0
        # Ten validators in a row have one address.
        credentials[kinds > 0, 12:] = credentials[np.arange(count) // 10 * 10, 12:][kinds > 0]
        validators["withdrawal_credentials"] = credentials
        compounding = kinds == 2
        validators["effective_balance"][compounding] = (
            self.rng.integers(32, 512, compounding.sum()) * ETH
        )
        for name in ("exit_epoch", "withdrawable_epoch"):
            validators[name] = FAR
        return validators

    def _draw_seats(self) -> bytes:
        """Return a sync committee: so many validators and an aggregate key."""
        active = np.flatnonzero(self.validators["exit_epoch"] == FAR)
        chosen = self.rng.choice(active, SPEC.sync_committee_size)
        return bytes(self.validators["pubkey"][chosen].tobytes() + bytes(48))

    def _draw_outages(self, count: int, epochs: int) -> np.ndarray:
        """Return for each epoch and validator whether the validator is offline."""
        offline = np.zeros((epochs + 1, count + 100), np.bool_)
        for index in self.rng.choice(count, count // 100, replace=False).tolist():
            first = int(self.rng.integers(0, epochs))
            offline[first : first + int(self.rng.integers(3, 60)), index] = True
        offline[epochs // 3 : epochs // 3 + 12, count * 2 // 5 : count * 2 // 5 + count // 50] = (
            True
        )
        offline[:, 7 :: max(count // 10, 8)] = True
        offline[epochs // 2 : epochs // 2 + 9, 1] = True
        return offline

    def _plan_events(self, count: int, epochs: int) -> None:
        """Choose validators that exit or are slashed, and deposits, by epoch."""
        self.exits = {epochs // 8 * n + 2: count // 9 * n + 5 for n in range(1, 7)}
        self.proposer_slashings = {epochs // 4: count // 3}
        self.attester_slashings = {epochs // 2: (count // 4, count // 4 + 1)}
        self.new_deposits = {epochs // 10 * n + 1: n for n in range(1, 8)}

    # The chain.

    def read_state(self, slot: int) -> BeaconState:
        """Return the state with the values of this moment, as of *slot*."""
        self.values |= {
            "slot": slot.to_bytes(8, "little"),
            "validators": self.validators.tobytes(),
            "block_roots": self.block_roots.tobytes(),
            "slashings": self.slashings.tobytes(),
            "pending_deposits": self.pending.tobytes(),
            "next_withdrawal_index": self.withdrawal_index.to_bytes(8, "little"),
            "next_withdrawal_validator_index": self.sweep_index.to_bytes(8, "little"),
        }
        return decode_state(encode_state(self.values), SPEC)

    def grow(self) -> None:
        """Make and write all epochs."""
        before = self.read_state(0)
        self.writer.write_state("genesis", self.values)
        committees: dict[int, Committees] = {}
        participation = BlockParticipation(SPEC)
        for epoch in range(self.epochs):
            first = SPEC.first_slot_of(epoch)
            state = self.read_state(first)
            committees = {epoch: compute_committees(SPEC, state, epoch)} | {
                number: known for number, known in committees.items() if number == epoch - 1
            }
            if epoch > 0:
                participation = BlockParticipation.from_state(SPEC, before, committees[epoch - 1])
            total = state.get_total_active_balance(SPEC)
            participation.start_epoch(epoch, committees[epoch], state.effective_balances, total)
            registry = EpochRegistry.build(
                SPEC, epoch, before=before, after=state, balances=state.balances,
                sync_committee=state.current_sync_committee, total_active_balance=total,
            )  # fmt: skip
            self._make_blocks(epoch, state, committees, participation, registry)
            self.values |= {
                "balances": registry.balances.tobytes(),
                "previous_epoch_participation": participation.previous.tobytes(),
                "current_epoch_participation": participation.current.tobytes(),
            }
            before = self.read_state(first + SPEC.slots_per_epoch - 1)
            self.writer.write_state(before.slot, self.values)
            self._process_epoch(before)
        finalized = Justification.from_state(before).finalized_epoch
        self.writer.finish(before.slot, finalized, len(before.balances))

    def _make_blocks(
        self,
        epoch: int,
        state: BeaconState,
        committees: dict[int, Committees],
        participation: BlockParticipation,
        registry: EpochRegistry,
    ) -> None:
        proposers = compute_proposers(SPEC, state, epoch).tolist()
        self.writer.write_proposers(epoch, proposers)
        for place, proposer in enumerate(proposers):
            slot = SPEC.first_slot_of(epoch) + place
            is_missed = self.offline[epoch, proposer] or registry.slashed[proposer]
            is_missed |= self.rng.random() < MISSED_PROPOSALS or slot == 0
            if not is_missed:
                message = self._build_block(slot, proposer, committees, registry)
                reward = participation.process_block(message)
                assert reward is not None
                compute_slot_income(registry, message, reward)
                root = compute_block_root(SPEC, message)
                self.last_root = bytes.fromhex(root[2:])
                self.writer.write_block(slot, root, {"message": message, "signature": SIGNATURE})
            self.roots[slot] = self.last_root
            self.block_roots[slot % SPEC.slots_per_historical_root] = np.frombuffer(
                self.last_root, np.uint8
            )
            self._vote(slot, committees[epoch])

    def _vote(self, slot: int, committees: Committees) -> None:
        """Add the votes of the committees of a slot to those that wait for a block."""
        members = np.concatenate(committees.at_slot(slot))
        epoch, draw = SPEC.epoch_of(slot), self.rng.random(len(members))
        is_slow = self.is_slow[np.minimum(members, len(self.is_slow) - 1)]
        late = MISSED + np.where(is_slow, SLOW_SHARE, LATE)
        votes = np.where(draw < MISSED, -1, np.where(draw < late, 1, 0))
        votes[(draw >= late) & (draw < late + OTHER_HEAD)] = 2
        votes[self.offline[epoch, members]] = -1
        delays = self.rng.choice(DELAYS, len(members), p=[0.7, 0.2, 0.1])
        groups = [(1, votes == 0, False), (1, votes == 2, True)]
        groups += [(delay, (votes == 1) & (delays == delay), False) for delay in DELAYS]
        for delay, chosen, is_other_head in groups:
            if chosen.any():
                bits = np.packbits(np.append(chosen, True), bitorder="little").tobytes()
                self.waiting.append(Aggregate(slot + delay, slot, bits, is_other_head))

    def _build_attestation(self, waiting: Aggregate, committees: Committees) -> dict[str, Any]:
        """Return an attestation; a vote for another head is for the block before."""
        slot = waiting.voted
        epoch = SPEC.epoch_of(slot)
        first = SPEC.first_slot_of(epoch)
        head, target = self.roots[slot], self.roots[first]
        if waiting.is_other_head:
            head = next(
                (self.roots[n] for n in range(slot, -1, -1) if self.roots.get(n, head) != head),
                bytes(32),
            )
            target = head if slot == first else target
        bits = (1 << len(committees.at_slot(slot))) - 1
        source = {"epoch": str(max(epoch - 1, 0)), "root": ROOT}
        return {
            "aggregation_bits": encode_hex(waiting.bits),
            "data": {
                "slot": str(slot),
                "index": "0",
                "beacon_block_root": encode_hex(head),
                "source": source,
                "target": {"epoch": str(epoch), "root": encode_hex(target)},
            },
            "signature": SIGNATURE,
            "committee_bits": encode_hex(bits.to_bytes(8, "little")),
        }

    def _build_block(
        self, slot: int, proposer: int, committees: dict[int, Committees], registry: EpochRegistry
    ) -> dict[str, Any]:
        epoch = SPEC.epoch_of(slot)
        due = [each for each in self.waiting if each.due <= slot]
        self.waiting = [each for each in self.waiting if each.due > slot]
        attestations = [
            self._build_attestation(each, committees[SPEC.epoch_of(each.voted)])
            for each in due
            if SPEC.epoch_of(each.voted) >= epoch - 1
        ]
        seats = registry.sync_committee
        is_signed = ~self.offline[epoch, seats] & (self.rng.random(len(seats)) < 0.996)
        body = {
            "randao_reveal": SIGNATURE,
            "eth1_data": {"deposit_root": ROOT, "deposit_count": "0", "block_hash": ROOT},
            "graffiti": encode_hex(f"client {proposer % 5}".encode().ljust(32, b"\0")),
            **dict.fromkeys(("proposer_slashings", "attester_slashings", "deposits"), ()),
            **dict.fromkeys(("voluntary_exits", "bls_to_execution_changes"), ()),
            "blob_kzg_commitments": (),
            "attestations": attestations,
            "sync_aggregate": {
                "sync_committee_bits": encode_hex(
                    np.packbits(is_signed, bitorder="little").tobytes()
                ),
                "sync_committee_signature": SIGNATURE,
            },
            "execution_payload": self._build_payload(slot, proposer, registry.balances),
            "execution_requests": {"deposits": [], "withdrawals": [], "consolidations": []},
        }
        if slot % SPEC.slots_per_epoch > OPERATIONS_FROM:
            self._add_operations(slot, body)
        return {
            "slot": str(slot),
            "proposer_index": str(proposer),
            "parent_root": encode_hex(self.last_root),
            "state_root": ROOT,
            "body": body,
        }

    # Payments.

    def _build_payload(self, slot: int, proposer: int, balances: np.ndarray) -> dict[str, Any]:
        """Return an execution payload, and write its block and receipts."""
        number, time = FIRST_BLOCK + slot, SPEC.genesis_time + slot * SPEC.seconds_per_slot
        block_hash = encode_hex(build_hash("execution", number))
        is_built = self.rng.random() < 0.8
        own = encode_hex(self.validators["withdrawal_credentials"][proposer, 12:].tobytes())
        tips = (self.rng.lognormal(0.5, 1.2, TRANSACTIONS) * 10**9).astype(np.int64).tolist()
        sent = [(encode_hex(bytes([7, n]) * 10), "0x" + "ee" * 20, 0) for n in range(TRANSACTIONS)]
        gas = [900_000] * TRANSACTIONS
        if is_built:
            paid = sum(tip * used for tip, used in zip(tips, gas, strict=True))
            extra = int(self.rng.lognormal(-3.5, 1.2) * 10**18)
            sent.append((BUILDER, own, max(paid * 9 // 10, 1) + extra))
            tips.append(0)
            gas.append(21_000)
        hashes = [encode_hex(build_hash(f"transaction {number}", n)) for n in range(len(sent))]
        self.writer.write_execution_block(
            number,
            {
                "number": hex(number),
                "hash": block_hash,
                "gasUsed": hex(sum(gas)),
                "timestamp": hex(time),
                "baseFeePerGas": hex(BASE_FEE),
                "transactions": [
                    {"hash": each, "from": sender, "to": to, "value": hex(value), "input": "0x"}
                    for each, (sender, to, value) in zip(hashes, sent, strict=True)
                ],
            },
            [
                {
                    "transactionHash": each,
                    "blockHash": block_hash,
                    "gasUsed": hex(used),
                    "effectiveGasPrice": hex(BASE_FEE + tip),
                    "status": "0x1",
                }
                for each, used, tip in zip(hashes, gas, tips, strict=True)
            ],
        )
        return {
            **dict.fromkeys(("parent_hash", "state_root", "receipts_root", "prev_randao"), ROOT),
            "block_hash": block_hash,
            "block_number": str(number),
            "gas_limit": "36000000",
            "gas_used": str(sum(gas)),
            "timestamp": str(time),
            "fee_recipient": BUILDER if is_built else own,
            "logs_bloom": encode_hex(bytes(256)),
            "extra_data": "0x",
            "base_fee_per_gas": str(BASE_FEE),
            "transactions": ["0x02"] * len(sent),
            "withdrawals": self._sweep(slot, balances),
            **dict.fromkeys(("blob_gas_used", "excess_blob_gas"), "0"),
        }

    def _sweep(self, slot: int, balances: np.ndarray) -> list[dict[str, str]]:
        """Return the withdrawals of a block: the next 16 validators with too much or none to do."""
        epoch, rows = SPEC.epoch_of(slot), self.validators
        kinds, effective = rows["withdrawal_credentials"][:, 0], rows["effective_balance"]
        most = np.where(kinds == 2, SPEC.max_effective_balance_electra, SPEC.min_activation_balance)
        withdrawable = rows["withdrawable_epoch"].view(np.uint64) <= epoch
        excess = np.where(withdrawable, balances, np.where(effective == most, balances - most, 0))
        found = np.flatnonzero((kinds > 0) & (excess > 0))
        start = np.searchsorted(found, self.sweep_index)
        chosen = np.concatenate([found[start:], found[:start]])[: SPEC.max_withdrawals_per_payload]
        withdrawals = []
        for index in chosen.tolist():
            withdrawals.append(
                {
                    "index": str(self.withdrawal_index),
                    "validator_index": str(index),
                    "address": encode_hex(rows["withdrawal_credentials"][index, 12:].tobytes()),
                    "amount": str(excess[index]),
                }
            )
            self.withdrawal_index += 1
        if len(chosen):
            self.sweep_index = int(chosen[-1] + 1) % len(rows)
        return withdrawals

    # Operations.

    def _add_operations(self, slot: int, body: dict[str, Any]) -> None:
        """Add the operations of the epoch to a block, once."""
        epoch = SPEC.epoch_of(slot)
        index = self.exits.pop(epoch, None)
        if index is not None:
            body["voluntary_exits"] = [
                {
                    "message": {"epoch": str(epoch), "validator_index": str(index)},
                    "signature": SIGNATURE,
                }
            ]
            self._exit(index, epoch)
        index = self.proposer_slashings.pop(epoch, None)
        if index is not None:
            header = {
                "slot": str(slot - 3),
                "proposer_index": str(index),
                **dict.fromkeys(("parent_root", "state_root", "body_root"), ROOT),
            }
            signed = {"message": header, "signature": SIGNATURE}
            body["proposer_slashings"] = [{"signed_header_1": signed, "signed_header_2": signed}]
            self._slash(index, epoch)
        indices = self.attester_slashings.pop(epoch, None)
        if indices is not None:
            checkpoint = {"epoch": str(epoch - 1), "root": ROOT}
            vote = {
                "attesting_indices": [str(each) for each in indices],
                "data": {
                    "slot": str(slot - 3),
                    "index": "0",
                    "beacon_block_root": ROOT,
                    "source": checkpoint,
                    "target": checkpoint,
                },
                "signature": SIGNATURE,
            }
            body["attester_slashings"] = [{"attestation_1": vote, "attestation_2": vote}]
            for each in indices:
                self._slash(each, epoch)
        number = self.new_deposits.pop(epoch, None)
        if number is not None:
            self._request_deposit(slot, number, body)

    def _exit(self, index: int, epoch: int) -> None:
        self.validators["exit_epoch"][index] = epoch + 1 + SPEC.max_seed_lookahead
        self.validators["withdrawable_epoch"][index] = (
            epoch + 1 + SPEC.max_seed_lookahead + SPEC.min_validator_withdrawability_delay
        )

    def _slash(self, index: int, epoch: int) -> None:
        self._exit(index, epoch)
        vector = SPEC.epochs_per_slashings_vector
        self.validators["slashed"][index] = 1
        self.validators["withdrawable_epoch"][index] = epoch + vector
        self.slashings[epoch % vector] += self.validators["effective_balance"][index]
        self.offline[epoch:, index] = True

    def _request_deposit(self, slot: int, number: int, body: dict[str, Any]) -> None:
        """Add a deposit: odd numbers for a new validator, even ones for a known one."""
        row = self.validators[number : number + 1].copy()
        amount = 10 * ETH
        if number % 2:
            row["pubkey"] = self.rng.integers(0, 256, (1, 48), np.uint8)
            amount = 32 * ETH
        entry = np.zeros(1, PENDING_DEPOSIT)
        for name in ("pubkey", "withdrawal_credentials"):
            entry[name] = row[name]
        entry["amount"], entry["slot"] = amount, slot
        self.pending = np.append(self.pending, entry)
        body["execution_requests"]["deposits"] = [
            {
                "pubkey": encode_hex(row["pubkey"].tobytes()),
                "withdrawal_credentials": encode_hex(row["withdrawal_credentials"].tobytes()),
                "amount": str(amount),
                "signature": SIGNATURE,
                "index": str(self.deposits),
            }
        ]
        self._add_deposit(None, FIRST_BLOCK + slot, amount, row)

    def _add_deposit(
        self, index: int | None, block: int, amount: int, row: np.ndarray | None = None
    ) -> None:
        """Write the event of a deposit: of genesis, or of the *row* of a later one."""
        chosen = self.validators[index : (index or 0) + 1] if row is None else row
        fields = (
            chosen["pubkey"].tobytes(),
            chosen["withdrawal_credentials"].tobytes(),
            amount.to_bytes(8, "little"),
            bytes(96),
            self.deposits.to_bytes(8, "little"),
        )
        self.writer.write_deposit(
            block, SPEC.genesis_time + (block - FIRST_BLOCK) * SPEC.seconds_per_slot,
            self.deposits, fields,
        )  # fmt: skip
        self.deposits += 1

    # The end of an epoch.

    def _process_epoch(self, before: BeaconState) -> None:
        """Apply the transition at the end of the epoch of *before*."""
        epoch = SPEC.epoch_of(before.slot)
        rows = self.validators
        justification = Justification.after(SPEC, before)
        if epoch > 0:
            was_active = before.is_active(epoch - 1)
            timely = (before.previous_participation & TIMELY_TARGET) != 0
            scores = update_inactivity_scores(
                SPEC,
                before.inactivity_scores,
                was_active | (before.slashed & (epoch < before.withdrawable_epochs)),
                timely & was_active & ~before.slashed,
                is_leak=justification.is_leak(SPEC, epoch),
            )
        else:
            scores = before.inactivity_scores
        # The registry: eligible, then active once that is final.
        unset = rows["activation_eligibility_epoch"] == FAR
        final = justification.finalized_epoch
        eligible = (rows["activation_eligibility_epoch"] <= final) & ~unset
        is_new = eligible & (rows["activation_epoch"] == FAR)
        rows["activation_epoch"][is_new] = epoch + 1 + SPEC.max_seed_lookahead
        enough = rows["effective_balance"] >= SPEC.min_activation_balance
        rows["activation_eligibility_epoch"][unset & enough] = epoch + 1
        rewards = AttestationRewards.from_state(SPEC, before) if epoch > 0 else None
        transition = compute_transition(SPEC, before, None, rewards)
        balances = transition.balances
        applied = self.pending[: len(transition.deposits)]
        self.pending = self.pending[len(applied) :]
        for entry, move in zip(applied, transition.deposits, strict=True):
            if move.validator_index >= len(rows):
                rows = self._add_validator(entry)
        added = len(rows) - len(scores)
        self._update_effective_balances(balances)
        self.values |= {
            "balances": balances.tobytes(),
            "inactivity_scores": np.append(scores, np.zeros(added, np.int64)).tobytes(),
            "previous_epoch_participation": before.current_participation.tobytes() + bytes(added),
            "current_epoch_participation": bytes(len(rows)),
            "justification_bits": bytes(
                [sum(1 << place for place, bit in enumerate(justification.bits) if bit)]
            ),
        }
        for name in ("previous_justified", "current_justified", "finalized"):
            number = getattr(justification, f"{name}_epoch")
            root = self.roots.get(SPEC.first_slot_of(number), bytes(32))
            self.values[f"{name}_checkpoint"] = number.to_bytes(8, "little") + root
        if (epoch + 1) % SPEC.epochs_per_sync_committee_period == 0:
            self.values["current_sync_committee"] = self.values["next_sync_committee"]
            self.values["next_sync_committee"] = self._draw_seats()

    def _add_validator(self, entry: np.ndarray) -> np.ndarray:
        row = np.zeros(1, VALIDATOR)
        for name in ("pubkey", "withdrawal_credentials"):
            row[name] = entry[name]
        row["effective_balance"] = min(int(entry["amount"]) // ETH * ETH, 32 * ETH)
        for name in VALIDATOR.names or ():
            if name.endswith("_epoch"):
                row[name] = FAR
        self.validators = np.append(self.validators, row)
        return self.validators

    def _update_effective_balances(self, balances: np.ndarray) -> None:
        rows = self.validators
        step = SPEC.effective_balance_increment // SPEC.hysteresis_quotient
        effective = rows["effective_balance"]
        compounding = rows["withdrawal_credentials"][:, 0] == 2
        most = np.where(
            compounding, SPEC.max_effective_balance_electra, SPEC.min_activation_balance
        )
        changed = balances + step * SPEC.hysteresis_downward_multiplier < effective
        changed |= effective + step * SPEC.hysteresis_upward_multiplier < balances
        whole = balances - balances % SPEC.effective_balance_increment
        rows["effective_balance"] = np.where(changed, np.minimum(whole, most), effective)
