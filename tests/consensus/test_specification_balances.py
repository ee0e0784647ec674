"""Transitions and blocks at random, whose balances the executable specification computed.

Among them: balances near zero, validators slashed, exiting, ejected or waiting, full queues,
deposits with invalid signatures, the upgrade to Electra, Fulu.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np

from beaconframes.consensus import epoch_moves, slot_income
from beaconframes.consensus.epoch_moves import compute_transition
from beaconframes.consensus.slot_income import EpochRegistry, compute_slot_income
from beaconframes.consensus.state import decode_state

from ..support.beacon_states import load_states

FOLDER = Path(__file__).parent.parent / "recordings" / "specification_states"


def read_cases(name):
    """Return the chain, the states before and after, and the values of each case of a file."""
    chain = load_states("electra").spec
    fulu = replace(chain, fork_epochs=chain.fork_epochs | {"fulu": 37})
    for line in lzma.decompress((FOLDER / f"{name}.jsonl.xz").read_bytes()).splitlines():
        case = json.loads(line)
        spec = fulu if case["fork"] == "fulu" else chain
        states = (decode_state(bytes.fromhex(case[time]), spec) for time in ("before", "after"))
        yield spec, *states, case


def test_transitions_lead_to_the_balances_of_the_specification():
    kinds, forks = set(), set()
    for spec, before, after, case in read_cases("transitions"):
        transition = compute_transition(spec, before, after)
        assert transition.balances.tolist() == case["balances"]
        kinds |= {move.kind for move in transition.moves}
        forks.add(before.fork)
    assert kinds == set(epoch_moves.KINDS)
    assert forks == {"deneb", "electra", "fulu"}


def test_blocks_lead_to_the_balances_of_the_specification():
    kinds = set()
    for spec, before, after, case in read_cases("blocks"):
        registry = EpochRegistry.build(
            spec,
            spec.epoch_of(after.slot),
            before=before,
            after=after,
            balances=np.array(case["start"]),
            sync_committee=after.current_sync_committee,
            total_active_balance=after.get_total_active_balance(spec),
            blocks=case["blocks"],
        )
        for block in case["blocks"]:
            kinds |= {row.kind for row in compute_slot_income(registry, block, 0)}
        assert registry.balances.tolist() == case["balances"]
    assert kinds == set(slot_income.KINDS) - {"attestation_inclusion"}
