"""CPU time and memory of one epoch from a beacon state, compared with the JSON of its validators.

Run: ``python benchmarks/beacon_state.py``. A synthetic state of Electra, mainnet preset, has
2,300,000 registered and 1,000,000 active validators. From its SSZ bytes come the registry, the
attestation rewards, the committees and the proposers of all validators. The comparison reads only
the registry: ``json.loads`` and pandas on the response of ``states/{state_id}/validators``, for
one of every 23 validators, times 23. That response has no participation flags, from which rewards
follow. Each case runs in an interpreter of its own.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sizes import choose

from beaconframes.consensus.attestation_rewards import AttestationRewards
from beaconframes.consensus.shuffling import compute_committees, compute_proposers
from beaconframes.consensus.spec import Spec
from beaconframes.consensus.state import decode_state
from beaconframes.consensus.state_fields import VALIDATOR, list_fields

if TYPE_CHECKING:
    from collections.abc import Callable

REGISTERED, ACTIVE = choose((2_300_000, 1_000_000), (23_000, 10_000))
SHARE = 23
EPOCH = 400_000
ROUNDS = choose(5, 1)
ETH = 10**9
SPEC = Spec(
    name="synthetic",
    genesis_time=0,
    genesis_validators_root=bytes(32),
    fork_epochs=dict.fromkeys(("altair", "bellatrix", "capella", "deneb", "electra"), 0),
    fork_versions={"electra": bytes.fromhex("05000000")},
)


def generate_values() -> dict[str, bytes]:
    """Return the fields of a state of the last slot of an epoch, as far as they matter."""
    rng = np.random.default_rng(7)
    validators = np.zeros(REGISTERED, VALIDATOR)
    validators["pubkey"] = rng.integers(0, 256, (REGISTERED, 48), np.uint8)
    validators["withdrawal_credentials"] = rng.integers(0, 256, (REGISTERED, 32), np.uint8)
    compounding = rng.random(REGISTERED) < 0.01
    validators["effective_balance"] = np.where(
        compounding, rng.integers(33, 2049, REGISTERED) * ETH, 32 * ETH
    )
    is_active = np.zeros(REGISTERED, np.bool_)
    is_active[rng.permutation(REGISTERED)[:ACTIVE]] = True
    validators["activation_epoch"] = rng.integers(0, EPOCH - 10, REGISTERED)
    exits = rng.integers(EPOCH - 9, EPOCH, REGISTERED)
    for name, delay in (("exit_epoch", 0), ("withdrawable_epoch", 256)):
        validators[name] = np.where(is_active, -1, exits + delay)
    flags = rng.choice(np.array([0, 3, 7], np.uint8), (2, REGISTERED), p=[0.01, 0.02, 0.97])
    flags[:, ~is_active] = 0
    seats = validators["pubkey"][np.flatnonzero(is_active)[:512]].tobytes() + bytes(48)
    return {
        "slot": (SPEC.first_slot_of(EPOCH + 1) - 1).to_bytes(8, "little"),
        "fork": bytes.fromhex("0400000005000000") + bytes(8),
        "validators": validators.tobytes(),
        "balances": (validators["effective_balance"] + 10**7).tobytes(),
        "randao_mixes": rng.bytes(32 * SPEC.epochs_per_historical_vector),
        "previous_epoch_participation": flags[0].tobytes(),
        "current_epoch_participation": flags[1].tobytes(),
        "finalized_checkpoint": (EPOCH - 2).to_bytes(8, "little") + bytes(32),
        "inactivity_scores": np.where(rng.random(REGISTERED) < 0.01, 40, 0).tobytes(),
        "current_sync_committee": seats,
        "next_sync_committee": seats,
    }


def encode_state(values: dict[str, bytes]) -> bytes:
    """Return the SSZ bytes of a state with some fields; the others are zero or empty."""
    fixed, lists = [], []
    fields = list(list_fields(SPEC, "electra"))
    offset = sum(size or 4 for _, size in fields)
    for name, size in fields:
        if size is None:
            fixed.append(offset.to_bytes(4, "little"))
            lists.append(values.get(name, b""))
            offset += len(lists[-1])
        else:
            fixed.append(values.get(name, bytes(size)))
    return b"".join(fixed + lists)


def generate_json(ssz: bytes) -> bytes:
    """Return the JSON of one of every 23 validators, as a node sends it."""
    state = decode_state(ssz, SPEC)
    rows = [
        {
            "index": str(index),
            "balance": str(state.balances[index]),
            "status": "active_ongoing",
            "validator": {
                "pubkey": f"0x{state.pubkeys[index].tobytes().hex()}",
                "withdrawal_credentials": f"0x{index:064x}",
                "effective_balance": str(state.effective_balances[index]),
                "slashed": False,
                "activation_eligibility_epoch": str(state.activation_epochs[index]),
                "activation_epoch": str(state.activation_epochs[index]),
                "exit_epoch": str(2**64 - 1),
                "withdrawable_epoch": str(2**64 - 1),
            },
        }
        for index in range(0, REGISTERED, SHARE)
    ]
    return json.dumps({"data": rows}, separators=(",", ":")).encode()


def process_state(path: str) -> dict[str, float]:
    """Return the CPU seconds of each step, and the memory in MB."""
    ssz = Path(path).read_bytes()
    state, seconds = measure_cpu(lambda: decode_state(ssz, SPEC))
    spent = {"decode": seconds}
    rewards, spent["attestation rewards"] = measure_cpu(
        lambda: AttestationRewards.from_state(SPEC, state)
    )
    committees, spent["committees"] = measure_cpu(lambda: compute_committees(SPEC, state, EPOCH))
    proposers, spent["proposers"] = measure_cpu(lambda: compute_proposers(SPEC, state, EPOCH))
    if (len(committees.validators), len(proposers)) != (ACTIVE, 32) or rewards.is_leak:
        raise SystemExit("the results are not those of the synthetic state")
    return spent | {"sum": sum(spent.values()), "memory": read_memory()}


def process_json(path: str) -> dict[str, float]:
    """Return the CPU seconds of the registry from JSON, for all validators, and the memory."""
    import pandas as pd

    body = Path(path).read_bytes()

    def read() -> pd.DataFrame:
        frame = pd.json_normalize(json.loads(body)["data"])
        numbers = [name for name in frame if name.endswith(("balance", "epoch", "index"))]
        return frame.astype(dict.fromkeys(numbers, "uint64"))

    _, seconds = measure_cpu(read)
    return {"sum": SHARE * seconds, "memory": read_memory()}


def measure_cpu(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result and the CPU seconds of *work*."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def read_memory() -> float:
    """Return the largest resident memory of this process so far in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def generate(folder: str) -> dict[str, float]:
    """Write both responses to a folder and return their sizes in MB."""
    ssz = encode_state(generate_values())
    (Path(folder) / "state").write_bytes(ssz)
    body = generate_json(ssz)
    (Path(folder) / "json").write_bytes(body)
    return {"state": len(ssz) / 1e6, "json": SHARE * len(body) / 1e6}


def run(case: str, path: str, script: str = __file__) -> dict[str, float]:
    """Return what a case prints in a new interpreter, whose memory is its own."""
    command = [sys.executable, script, case, path]
    result: dict[str, float] = json.loads(subprocess.check_output(command))
    return result


def main() -> None:
    """Print CPU seconds, memory and the ratio: medians of alternating rounds."""
    with tempfile.TemporaryDirectory() as folder:
        sizes = run("generate", folder)
        rounds = [
            {case: run(case, str(Path(folder) / case)) for case in ("state", "json")}
            for _ in range(ROUNDS)
        ]
    ours, theirs = (
        {name: statistics.median(each[case][name] for each in rounds) for name in rounds[0][case]}
        for case in ("state", "json")
    )
    print(f"SSZ, {sizes['state']:,.0f} MB")
    for name, value in ours.items():
        print(f"  {name:<24}{value:>8,.2f} {'MB' if name == 'memory' else 's'}")
    print(f"JSON, {sizes['json']:,.0f} MB")
    print(f"  {'registry':<24}{theirs['sum']:>8,.2f} s")
    print(f"  {'memory, 1 of 23 rows':<24}{theirs['memory']:>8,.2f} MB")
    print(f"  ratio of the sum {theirs['sum'] / ours['sum']:.0f}")
    print(f"  ratio of the registry {theirs['sum'] / ours['decode']:.0f}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        process = {"generate": generate, "state": process_state, "json": process_json}[sys.argv[1]]
        print(json.dumps(process(sys.argv[2])))
    else:
        main()
