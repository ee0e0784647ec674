"""CPU time and memory of one epoch of an index of all validators: all tables, reconciled.

Run: ``python benchmarks/index_epoch.py``. A synthetic chain of Electra, mainnet preset, has
2,300,000 registered and 1,000,000 active validators. Each epoch has a state of 322 MB and 32 blocks
of 8 aggregates of all 64 committees. Rewards, blocks and transitions follow the specification, so
that all balances are explained. The first epoch needs four states and the blocks of three epochs;
each following one needs one state and the blocks of one epoch more. Ten epochs are built and stored
by one process, as `bf.index` does; then once more for some chosen validators, 1,000 of them active.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from beacon_state import (
    ACTIVE,
    EPOCH,
    ETH,
    REGISTERED,
    SPEC,
    encode_state,
    generate_values,
    read_memory,
    run,
)
from sizes import choose

from beaconframes.beacon_node.amounts.states import StateAmounts
from beaconframes.beacon_node.chain.reader import ChainReader
from beaconframes.beacon_node.index.coverage import EpochTask
from beaconframes.beacon_node.index.epoch_builder import EpochBuilder
from beaconframes.beacon_node.index.epoch_writer import write_epochs
from beaconframes.beacon_node.tables import INDEXED_TABLES
from beaconframes.beacon_node.tables.declaration import PAYMENTS
from beaconframes.consensus.attestation_rewards import AttestationRewards, update_inactivity_scores
from beaconframes.consensus.block_root import compute_block_root
from beaconframes.consensus.epoch_moves import compute_transition
from beaconframes.consensus.participation import BlockParticipation
from beaconframes.consensus.shuffling import Committees, compute_committees, compute_proposers
from beaconframes.consensus.slot_income import EpochRegistry, compute_slot_income
from beaconframes.consensus.state import BeaconState, decode_state
from beaconframes.consensus.state_fields import VALIDATOR
from beaconframes.dataset import Dataset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.beacon_node.index.epoch_builder import EpochResult

INDEXED = choose(10, 2)
"""Epochs that are built and stored, one after the other."""
EPOCHS = INDEXED + 3
"""States that are made; the first one has no blocks."""
TRANSACTIONS, BYTES_PER_TRANSACTION = 200, 500
ROUNDS = choose(3, 1)
CHOSEN = range(0, REGISTERED, choose(1_000, 100))
"""Validators of an index that does not have all. As of all, ten of 23 are active."""
TABLES = tuple(name for name, each in INDEXED_TABLES.items() if each.needs is not PAYMENTS)
"""All tables of a consensus node."""


ROOTS: dict[int, str] = {}
"""The roots of the blocks that were built so far, by slot."""


def build_root(slot: int) -> str:
    """Return the root of the block of a slot; it is made up for slots before the first block."""
    return ROOTS.get(slot) or "0x" + hashlib.sha256(slot.to_bytes(8, "little")).hexdigest()


def build_block(
    slot: int, proposer: int, committees: dict[int, Committees], rng: np.random.Generator
) -> dict[str, Any]:
    """Return a signed block with aggregates of the two slots before it."""
    root, signature, address = "0x" + "11" * 32, "0x" + "22" * 96, "0x" + "33" * 20
    attestations = []
    for voted, copies in ((slot - 1, 6), (slot - 2, 2)):
        epoch = SPEC.epoch_of(voted)
        members = committees[epoch].at_slot(voted)
        size = sum(map(len, members))
        data = {
            "slot": str(voted),
            "index": "0",
            "beacon_block_root": build_root(voted),
            "source": {"epoch": str(epoch - 1), "root": root},
            "target": {"epoch": str(epoch), "root": build_root(SPEC.first_slot_of(epoch))},
        }
        for _ in range(copies):
            bits = np.packbits(np.append(rng.random(size) < 0.97, True), bitorder="little")
            attestations.append(
                {
                    "aggregation_bits": "0x" + bits.tobytes().hex(),
                    "data": data,
                    "signature": signature,
                    "committee_bits": "0x" + ((1 << len(members)) - 1).to_bytes(8, "little").hex(),
                }
            )
    first = slot * 16 % REGISTERED
    payload = {
        **dict.fromkeys(("parent_hash", "state_root", "receipts_root"), root),
        **dict.fromkeys(("prev_randao", "block_hash"), root),
        **dict.fromkeys(("block_number", "gas_limit", "gas_used"), str(slot)),
        **dict.fromkeys(("blob_gas_used", "excess_blob_gas"), "0"),
        "timestamp": str(SPEC.genesis_time + slot * SPEC.seconds_per_slot),
        "fee_recipient": address,
        "logs_bloom": "0x" + "44" * 256,
        "extra_data": "0x",
        "base_fee_per_gas": "1000000000",
        "transactions": [
            "0x" + rng.bytes(BYTES_PER_TRANSACTION).hex() for _ in range(TRANSACTIONS)
        ],
        "withdrawals": [
            {
                "index": str(slot * 16 + number),
                "validator_index": str((first + number) % REGISTERED),
                "address": address,
                "amount": "1000000",
            }
            for number in range(16)
        ],
    }
    body = {
        "randao_reveal": signature,
        "eth1_data": {"deposit_root": root, "deposit_count": "0", "block_hash": root},
        "graffiti": "0x" + b"benchmark".ljust(32, b"\0").hex(),
        **dict.fromkeys(("proposer_slashings", "attester_slashings", "deposits"), ()),
        **dict.fromkeys(("voluntary_exits", "bls_to_execution_changes"), ()),
        "blob_kzg_commitments": (),
        "attestations": attestations,
        "sync_aggregate": {
            "sync_committee_bits": "0x" + "fe" * 64,
            "sync_committee_signature": signature,
        },
        "execution_payload": payload,
        "execution_requests": {"deposits": [], "withdrawals": [], "consolidations": []},
    }
    message = {
        "slot": str(slot),
        "proposer_index": str(proposer),
        "parent_root": build_root(slot - 1),
        "state_root": root,
        "body": body,
    }
    ROOTS[slot] = compute_block_root(SPEC, message)
    return {"message": message, "signature": signature}


def encode_checkpoint(epoch: int) -> bytes:
    """Return the SSZ bytes of a checkpoint."""
    return epoch.to_bytes(8, "little") + bytes(32)


def encode_roots(slot: int) -> bytes:
    """Return the roots of the blocks before *slot*, in the order of a state."""
    size = SPEC.slots_per_historical_root
    roots = [bytes.fromhex(build_root(each)[2:]) for each in range(slot - size, slot)]
    return b"".join(roots[(place - slot) % size] for place in range(size))


def generate(folder: str) -> dict[str, float]:
    """Write the states and the blocks of a synthetic chain; return the size of a state in MB."""
    rng = np.random.default_rng(11)
    values = generate_values()
    validators = np.frombuffer(bytearray(values["validators"]), VALIDATOR)
    exited = np.flatnonzero(validators["exit_epoch"] > 0)
    committees: dict[int, Committees] = {}
    before: BeaconState | None = None
    for epoch in range(EPOCH, EPOCH + EPOCHS):
        last = SPEC.first_slot_of(epoch + 1) - 1
        # As on mainnet, each column of the registry changes in each epoch: here of a validator that
        # has exited, and so without an effect on the chain.
        changed = validators[exited[epoch - EPOCH] :][:1]
        changed["withdrawal_credentials"] = rng.integers(0, 256, 32, np.uint8)
        changed["effective_balance"] += ETH
        for name in ("activation_eligibility_epoch", "activation_epoch", "withdrawable_epoch"):
            changed[name] += 1
        changed["exit_epoch"] -= 1
        values |= {
            "validators": validators.tobytes(),
            "slot": last.to_bytes(8, "little"),
            "block_roots": encode_roots(last),
            "justification_bits": b"\x0f",
            "previous_justified_checkpoint": encode_checkpoint(epoch - 2),
            "current_justified_checkpoint": encode_checkpoint(epoch - 1),
            "finalized_checkpoint": encode_checkpoint(epoch - 2),
        }
        if before is None:
            state = decode_state(encode_state(values), SPEC)
            committees[epoch] = compute_committees(SPEC, state, epoch)
        else:
            state = advance(folder, values, before, committees, rng)
            values["block_roots"] = encode_roots(last)  # Now with those of this epoch's blocks.
        ssz = encode_state(values)
        (Path(folder) / f"state-{last}").write_bytes(ssz)
        before = decode_state(ssz, SPEC)
    return {"state": len(ssz) / 1e6}


def advance(
    folder: str,
    values: dict[str, bytes],
    before: BeaconState,
    committees: dict[int, Committees],
    rng: np.random.Generator,
) -> BeaconState:
    """Change the fields of a state to those of the next epoch, and write its blocks."""
    epoch = SPEC.epoch_of(before.slot) + 1
    rewards = AttestationRewards.from_state(SPEC, before)
    start = compute_transition(SPEC, before, None, rewards).balances
    active = before.is_active(epoch - 2)
    scores = update_inactivity_scores(
        SPEC, before.inactivity_scores, active, (before.previous_participation & 2) != 0,
        is_leak=False,
    )  # fmt: skip
    values |= {
        "balances": start.tobytes(),
        "inactivity_scores": scores.tobytes(),
        "previous_epoch_participation": before.current_participation.tobytes(),
    }
    state = decode_state(encode_state(values), SPEC)
    committees[epoch] = compute_committees(SPEC, state, epoch)
    proposers = compute_proposers(SPEC, state, epoch).tolist()
    participation = BlockParticipation.from_state(SPEC, before, committees[epoch - 1])
    total = state.get_total_active_balance(SPEC)
    participation.start_epoch(epoch, committees[epoch], state.effective_balances, total)
    registry = EpochRegistry.build(
        SPEC, epoch, before=before, after=state, balances=start,
        sync_committee=state.current_sync_committee, total_active_balance=total,
    )  # fmt: skip
    for place, proposer in enumerate(proposers):
        slot = SPEC.first_slot_of(epoch) + place
        block = build_block(slot, proposer, committees, rng)
        (Path(folder) / f"block-{slot}").write_bytes(json.dumps(block).encode())
        reward = participation.process_block(block["message"])
        assert reward is not None
        compute_slot_income(registry, block["message"], reward)
    values |= {
        "balances": registry.balances.tobytes(),
        "previous_epoch_participation": participation.previous.tobytes(),
        "current_epoch_participation": participation.current.tobytes(),
    }
    return state


class FolderApi:
    """The requests of a reader, answered from files."""

    optimistic_slot = None

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def state(self, slot: int) -> bytes:
        """Return the SSZ bytes of a state."""
        return (self.folder / f"state-{slot}").read_bytes()

    def block(self, slot: int) -> Any:
        """Return the JSON of a block."""
        return msgspec.json.decode((self.folder / f"block-{slot}").read_bytes())

    def header(self, slot: int) -> dict[str, str]:
        """Return the header of a block, as far as it matters."""
        return {"root": compute_block_root(SPEC, self.block(slot)["message"])}


class MeasuredBuilder(EpochBuilder):
    """Builds epochs, and checks and measures each of them."""

    def __init__(self, reader: ChainReader) -> None:
        super().__init__(reader, StateAmounts(reader))
        self.seconds: list[float] = []
        """CPU seconds of each epoch so far."""

    def __call__(self, tasks: Sequence[EpochTask]) -> list[EpochResult]:
        """Return the tables of the epochs; an epoch that is not explained ends the benchmark."""
        start = time.process_time()
        results = super().__call__(tasks)
        self.seconds.append(time.process_time() - start)
        for task, result in zip(tasks, results, strict=True):
            verified = result.verified_until >= task.epoch + 2
            if result.frames["unexplained_changes"].height or not verified:
                raise SystemExit("the balances are not explained")
            rows = result.frames["attestations"].height
            if rows != ACTIVE if task.validators is None else not 0 < rows < len(CHOSEN):
                raise SystemExit("the attestations are not those of the synthetic chain")
        return results


def process_chosen(folder: str) -> dict[str, float]:
    """Return the figures of an index of the chosen validators."""
    return process_epochs(folder, validators=tuple(CHOSEN))


def process_epochs(
    folder: str, tables: Sequence[str] = TABLES, validators: tuple[int, ...] | None = None
) -> dict[str, float]:
    """Return CPU seconds of the first and of a following epoch, and the largest memory."""
    api: Any = FolderApi(folder)
    head = SPEC.first_slot_of(EPOCH + EPOCHS) - 1
    builder = MeasuredBuilder(ChainReader(api, SPEC, head_slot=head, has_states=True))
    tasks = [EpochTask(EPOCH + 1 + number, tuple(tables), validators) for number in range(INDEXED)]
    whole, memory = [], []
    with tempfile.TemporaryDirectory(dir=folder) as target:
        dataset = Dataset.create(Path(target) / "index", meta={"chain": {}})
        start = time.process_time()
        for _ in write_epochs(dataset, [builder], tasks, settled=tasks[-1].epoch):
            whole.append(time.process_time() - start)
            memory.append(read_memory())
            start = time.process_time()
        size = sum(table.bytes for table in dataset.tables().values()) / INDEXED / 1e6
    stored = [both - built for both, built in zip(whole, builder.seconds, strict=True)]
    return {
        "first epoch": whole[0],
        "following epoch, built": statistics.median(builder.seconds[1:]),
        "following epoch, stored": statistics.median(stored[1:]),
        "following epoch": statistics.median(whole[1:]),
        "slowest following epoch": max(whole[1:]),
        "memory, first epoch": memory[0],
        "memory, all epochs": memory[-1],
        "Parquet": size,
    }


def main() -> None:
    """Print CPU seconds and memory, medians of rounds."""
    with tempfile.TemporaryDirectory() as folder:
        sizes = run("generate", folder, __file__)
        kinds = {"all validators": "process", f"{len(CHOSEN):,} chosen validators": "chosen"}
        found = {
            kind: [run(command, folder, __file__) for _ in range(ROUNDS)]
            for kind, command in kinds.items()
        }
    print(f"states of {sizes['state']:,.0f} MB")
    for kind, rounds in found.items():
        print(kind)
        for name in rounds[0]:
            unit = "MB" if name.startswith(("memory", "Parquet")) else "s"
            print(f"  {name:<26}{statistics.median(each[name] for each in rounds):>8,.2f} {unit}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        steps = {"generate": generate, "process": process_epochs, "chosen": process_chosen}
        print(json.dumps(steps[sys.argv[1]](sys.argv[2])))
    else:
        main()
