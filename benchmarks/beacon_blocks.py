"""CPU time of participation flags and slot income of an epoch of blocks, compared with plain loops.

Run: ``python benchmarks/beacon_blocks.py``. A synthetic chain of mainnet's size has 2,300,000
registered and 1,000,000 active validators. Each of the 32 blocks includes votes of the two slots
before it: before Electra 128 aggregates of one committee each, since Electra 8 aggregates of all 64
committees. 3 % of the bits of an aggregate are missing. The comparison sets the same flags in
loops over the bits of the first 2 of 32 blocks, times 16.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, Final

import numpy as np
from sizes import choose

from beaconframes.consensus.participation import BlockParticipation
from beaconframes.consensus.registry import Registry
from beaconframes.consensus.shuffling import Committees
from beaconframes.consensus.slot_income import EpochRegistry, compute_slot_income
from beaconframes.consensus.spec import FAR_FUTURE_EPOCH, Spec

REGISTERED, ACTIVE = choose((2_300_000, 1_000_000), (23_000, 10_000))
SLOTS, PER_SLOT = 32, 64
EPOCH, ROUNDS, LOOPED = 10, choose(5, 1), 2
ETH = 10**9
RNG: Final = np.random.default_rng(7)


def build_spec(fork: str) -> Spec:
    """Return a chain that is in *fork* from genesis on."""
    return Spec(
        name="synthetic",
        genesis_time=0,
        genesis_validators_root=bytes(32),
        fork_epochs={fork: 0},
        fork_versions={},
    )


def build_validators() -> Registry:
    """Return all registered validators; the active ones are those in committees."""
    never = np.full(REGISTERED, FAR_FUTURE_EPOCH)
    return Registry(
        effective_balances=np.full(REGISTERED, 32 * ETH),
        balances=np.full(REGISTERED, 32 * ETH),
        slashed=np.zeros(REGISTERED, np.bool_),
        activation_epochs=np.zeros(REGISTERED, np.int64),
        exit_epochs=never,
        withdrawable_epochs=never,
        pubkeys=np.zeros((REGISTERED, 48), np.uint8),
        withdrawal_credentials=np.zeros((REGISTERED, 32), np.uint8),
    )


def build_committees(epoch: int, active: np.ndarray[Any, Any]) -> Committees:
    """Return random committees."""
    bounds = np.linspace(0, ACTIVE, SLOTS * PER_SLOT + 1).astype(np.int64)
    return Committees(epoch, epoch * SLOTS, PER_SLOT, RNG.permutation(active), bounds)


def build_block(slot: int, fork: str, committees: dict[int, Committees]) -> dict[str, Any]:
    """Return a block with the votes of the two slots before it."""
    attestations = []
    for voted, copies in ((slot - 1, 6), (slot - 2, 2)):
        epoch = voted // SLOTS
        if epoch not in committees:
            continue
        data = {
            "slot": str(voted),
            "index": "0",
            "beacon_block_root": f"0x{voted:064x}",
            "target": {"epoch": str(epoch), "root": f"0x{epoch * SLOTS:064x}"},
        }
        members = committees[epoch].at_slot(voted)
        if fork == "electra":
            size, every = sum(map(len, members)), "0x" + "ff" * (PER_SLOT // 8)
            attestations += [
                {"aggregation_bits": build_bits(size), "data": data, "committee_bits": every}
                for _ in range(copies)
            ]
        else:
            attestations += [
                {"aggregation_bits": build_bits(len(each)), "data": data | {"index": str(index)}}
                for index, each in enumerate(members)
            ]
    lists = dict.fromkeys(("proposer_slashings", "attester_slashings", "deposits"), ())
    withdrawals = [{"validator_index": str(index), "amount": "1000"} for index in range(16)]
    body = lists | {
        "attestations": attestations,
        "sync_aggregate": {"sync_committee_bits": "0x" + "fe" * 64},
        "execution_payload": {"withdrawals": withdrawals},
    }
    root = f"0x{slot - 1:064x}"
    return {"slot": str(slot), "proposer_index": "0", "parent_root": root, "body": body}


def build_bits(size: int) -> str:
    """Return a bit list, with its delimiter."""
    bits = np.append(RNG.random(size) < 0.97, True)
    return "0x" + np.packbits(bits, bitorder="little").tobytes().hex()


def set_flags_in_loops(blocks: list[dict[str, Any]], committees: dict[int, Committees]) -> int:
    """Return the number of validators with a flag, as a script would count them."""
    voters: set[tuple[int, int]] = set()
    lists: dict[int, list[list[int]]] = {}
    for block in blocks:
        for attestation in block["body"]["attestations"]:
            data = attestation["data"]
            slot = int(data["slot"])
            if slot not in lists:
                lists[slot] = [each.tolist() for each in committees[slot // SLOTS].at_slot(slot)]
            members = lists[slot][int(data["index"])]
            if "committee_bits" in attestation:
                members = [index for each in lists[slot] for index in each]
            bits = bytes.fromhex(attestation["aggregation_bits"][2:])
            for place, index in enumerate(members):
                if bits[place // 8] >> place % 8 & 1:
                    voters.add((slot // SLOTS, index))
    return len(voters)


def measure(fork: str) -> tuple[float, float, float]:
    """Return CPU seconds: participation, slot income, and the comparison."""
    spec, validators = build_spec(fork), build_validators()
    active = RNG.choice(REGISTERED, ACTIVE, replace=False)
    committees = {epoch: build_committees(epoch, active) for epoch in (EPOCH - 1, EPOCH)}
    blocks = {
        epoch: [build_block(epoch * SLOTS + place, fork, committees) for place in range(SLOTS)]
        for epoch in committees
    }
    participation = BlockParticipation(spec)
    for epoch, its_committees in committees.items():
        start = time.process_time()
        participation.start_epoch(
            epoch, its_committees, validators.effective_balances, ACTIVE * 32 * ETH
        )
        rewards = [participation.process_block(block) for block in blocks[epoch]]
    flags = time.process_time() - start
    start = time.process_time()
    registry = EpochRegistry.build(
        spec,
        EPOCH,
        before=validators,
        after=validators,
        balances=validators.balances,
        sync_committee=active[:512],
        total_active_balance=ACTIVE * 32 * ETH,
    )
    for block, reward in zip(blocks[EPOCH], rewards, strict=True):
        compute_slot_income(registry, block, reward or 0)
    income = time.process_time() - start
    start = time.process_time()
    set_flags_in_loops(blocks[EPOCH][:LOOPED], committees)
    return flags, income, (time.process_time() - start) * SLOTS / LOOPED


def main() -> None:
    """Print CPU seconds and the ratio for both forms of attestations: medians."""
    for fork in ("deneb", "electra"):
        rounds = [measure(fork) for _ in range(ROUNDS)]
        flags, income, loops = map(statistics.median, zip(*rounds, strict=True))
        print(
            f"{fork:<8} participation {flags:.2f} s, slot income {income:.2f} s, "
            f"loops {loops:.1f} s, ratio {loops / flags:.0f}"
        )


if __name__ == "__main__":
    main()
