"""Make beacon states and their expected values with the executable specification.

Run it from an environment with ``eth-consensus-specs``; the tests do not need that package::

    pip install eth-consensus-specs==1.7.0a13 ckzg
    python make.py ../beacon_node/electra-recording.jsonl.xz .
"""

import base64
import json
import lzma
import random
import sys
from pathlib import Path

from eth_consensus_specs.electra import mainnet
from eth_consensus_specs.electra import minimal as electra
from eth_consensus_specs.fulu import minimal as fulu


def make_fulu(recording):
    """Return a state of Fulu, minimal preset, from the last state of the recorded Electra chain.

    The chain is upgraded and runs without blocks to the last slot of its third epoch.
    """
    rows = [json.loads(line) for line in lzma.decompress(recording.read_bytes()).splitlines()]
    answers = {row["p"]: row["r"] for row in rows if row["k"] in {"meta", "state"}}
    config = answers["/eth/v1/config/spec"]["data"]
    genesis = answers["/eth/v1/beacon/genesis"]["data"]
    last = max(int(row["p"].rsplit("/", 1)[1]) for row in rows
               if row["k"] == "state" and "genesis" not in row["p"])  # fmt: skip
    ssz = base64.b64decode(answers[f"/eth/v2/debug/beacon/states/{last}"]["ssz"])
    state = electra.BeaconState.decode_bytes(ssz)

    config["FULU_FORK_EPOCH"] = str((last + 1) // 8)
    config["BLOB_SCHEDULE"] = [{"EPOCH": str((last + 1) // 8), "MAX_BLOBS_PER_BLOCK": "15"}]
    for spec in (electra, fulu):
        known = spec.config._asdict()
        changes = {name: type(known[name])(int(text)) for name, text in config.items()
                   if name in known and str(text).isdigit()}  # fmt: skip
        spec.config = spec.config._replace(**changes)
    electra.process_slots(state, last + 1)
    state = fulu.upgrade_to_fulu(state)
    fulu.process_slots(state, state.slot + 2 * 8)
    # Grown after the proposers of the next epoch are chosen, but before those after them.
    for index, balance in ((5, 2048), (60, 1500)):
        state.balances[index] = state.validators[index].effective_balance = balance * 10**9
    fulu.process_slots(state, state.slot + 7)
    set_participation(state)
    lookahead = [int(index) for index in state.proposer_lookahead]
    later = fulu.get_beacon_proposer_indices(state, fulu.get_current_epoch(state) + 1)
    return state, {
        "config": config,
        "genesis": genesis,
        "proposers": lookahead[:8],
        "proposer_lookahead": lookahead,
        "proposers_of_next_epoch": [int(index) for index in later],
    }


def make_mainnet():
    """Return a state of Electra, mainnet preset, with 300 validators."""
    state = mainnet.BeaconState(
        genesis_validators_root=b"\x11" * 32,
        slot=100 * 32 + 31,
        fork=mainnet.Fork(
            previous_version=mainnet.config.DENEB_FORK_VERSION,
            current_version=mainnet.config.ELECTRA_FORK_VERSION,
            epoch=90,
        ),
    )
    for index in range(300):
        balance = (2048 if index == 251 else 32) * 10**9
        state.validators.append(mainnet.Validator(
            pubkey=b"\xa0" + index.to_bytes(47, "big"),
            withdrawal_credentials=b"\x02" + index.to_bytes(31, "big"),
            effective_balance=balance,
            slashed=index == 9,
            activation_eligibility_epoch=0,
            activation_epoch=0 if index < 280 else 99 + index % 4,
            exit_epoch=mainnet.FAR_FUTURE_EPOCH if index % 50 else 100,
            withdrawable_epoch=mainnet.FAR_FUTURE_EPOCH if index % 50 else 356,
        ))  # fmt: skip
        state.balances.append(balance + index)
        state.inactivity_scores.append(index % 3 * 20)
    state.validators[9].withdrawable_epoch = 8000
    set_participation(state)
    for epoch in range(90, 101):
        state.randao_mixes[epoch] = mainnet.hash(bytes([epoch]))
    for committee in (state.current_sync_committee, state.next_sync_committee):
        for seat in range(512):
            member = 7 if seat < 32 else seat * 11 % 300
            committee.pubkeys[seat] = state.validators[member].pubkey
    proposers = []
    for slot in range(100 * 32, 101 * 32):
        state.slot = slot
        proposers.append(int(mainnet.get_beacon_proposer_index(state)))
    return state, {"proposers": proposers}


def set_participation(state):
    """Set random participation flags."""
    numbers = random.Random(11)
    for name in ("previous_epoch_participation", "current_epoch_participation"):
        flags = [numbers.choice([0, 1, 3, 5, 7, 7, 7, 7]) for _ in state.validators]
        setattr(state, name, type(getattr(state, name))(*flags))


def write(name, spec, state, values):
    """Write a state, and what the functions of the specification return for it."""
    epoch, keys = spec.get_current_epoch(state), [each.pubkey for each in state.validators]
    expected = values | {
        "slot": int(state.slot),
        "balances": [int(balance) for balance in state.balances],
        "next_sync_committee": [keys.index(key) for key in state.next_sync_committee.pubkeys],
        "committees": [
            [slot, index, [int(member) for member in spec.get_beacon_committee(state, slot, index)]]
            for slot in range(epoch * spec.SLOTS_PER_EPOCH, (epoch + 1) * spec.SLOTS_PER_EPOCH)
            for index in range(spec.get_committee_count_per_slot(state, epoch))
        ],
    }
    save(f"{name}-state.ssz.xz", state.encode_bytes())
    spec.process_justification_and_finalization(state)
    spec.process_inactivity_updates(state)
    expected["leak"] = bool(spec.is_in_inactivity_leak(state))
    for flag, part in enumerate(("source", "target", "head")):
        gains, losses = spec.get_flag_index_deltas(state, flag)
        expected[part] = [int(gain) - int(loss) for gain, loss in zip(gains, losses, strict=True)]
    expected["inactivity"] = [-int(loss) for loss in spec.get_inactivity_penalty_deltas(state)[1]]
    save(f"{name}-expected.json.xz", json.dumps(expected, separators=(",", ":")).encode())


def save(name, content):
    """Write a compressed file."""
    packed = lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)
    (Path(sys.argv[2]) / name).write_bytes(packed)


write("fulu", fulu, *make_fulu(Path(sys.argv[1])))
write("mainnet", mainnet, *make_mainnet())
