"""Make the state of a Fulu chain and its expected values with the executable specification.

Run it from an environment with ``eth-consensus-specs``; the tests do not need that package::

    pip install eth-consensus-specs==1.7.0a13
    python make.py ../beacon_node/electra-recording.jsonl.xz .

It takes the state of the last epoch of the recorded Electra chain, upgrades it to Fulu, runs it to
the last slot of the third epoch without blocks, sets random participation flags, and writes what
the functions of the specification return for it.
"""

import base64
import json
import lzma
import random
import sys
from pathlib import Path

from eth_consensus_specs.electra import minimal as electra
from eth_consensus_specs.fulu import minimal as fulu

recording, folder = Path(sys.argv[1]), Path(sys.argv[2])
rows = [json.loads(line) for line in lzma.decompress(recording.read_bytes()).splitlines()]
answers = {row["p"]: row["r"] for row in rows if row["k"] in {"meta", "state"}}
config = answers["/eth/v1/config/spec"]["data"]
genesis = answers["/eth/v1/beacon/genesis"]["data"]
last = max(int(row["p"].rsplit("/", 1)[1]) for row in rows
           if row["k"] == "state" and "genesis" not in row["p"])  # fmt: skip
ssz = base64.b64decode(answers[f"/eth/v2/debug/beacon/states/{last}"]["ssz"])

# The upgrade is at the start of the epoch after the last recorded one.
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
# Validators 5 and 60 of 2.048 and 1.5 thousand ETH, so that not every proposer is drawn alike.
for index, balance in ((5, 2048), (60, 1500)):
    state.balances[index] = state.validators[index].effective_balance = balance * 10**9
fulu.process_slots(state, state.slot + 7)
numbers = random.Random(11)
for name in ("previous_epoch_participation", "current_epoch_participation"):
    flags = [numbers.choice([0, 1, 3, 5, 7, 7, 7, 7]) for _ in state.validators]
    setattr(state, name, type(getattr(state, name))(*flags))

epoch = fulu.get_current_epoch(state)
expected = {
    "config": config,
    "genesis": genesis,
    "slot": int(state.slot),
    "proposer_lookahead": [int(index) for index in state.proposer_lookahead],
    "proposers_of_next_epoch": [
        int(index) for index in fulu.get_beacon_proposer_indices(state, epoch + 1)
    ],
    "balances": [int(balance) for balance in state.balances],
    "next_sync_committee": [
        [each.pubkey for each in state.validators].index(pubkey)
        for pubkey in state.next_sync_committee.pubkeys
    ],
    "committees": [
        [slot, index, [int(member) for member in fulu.get_beacon_committee(state, slot, index)]]
        for slot in range(epoch * 8, epoch * 8 + 8)
        for index in range(fulu.get_committee_count_per_slot(state, epoch))
    ],
}
packed = lzma.compress(state.encode_bytes(), preset=9 | lzma.PRESET_EXTREME)
fulu.process_justification_and_finalization(state)
fulu.process_inactivity_updates(state)
expected["leak"] = bool(fulu.is_in_inactivity_leak(state))
for flag, name in enumerate(("source", "target", "head")):
    gains, losses = fulu.get_flag_index_deltas(state, flag)
    expected[name] = [int(gain) - int(loss) for gain, loss in zip(gains, losses, strict=True)]
expected["inactivity"] = [-int(loss) for loss in fulu.get_inactivity_penalty_deltas(state)[1]]

(folder / "state.ssz.xz").write_bytes(packed)
text = json.dumps(expected, separators=(",", ":")).encode()
(folder / "expected.json.xz").write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))
