"""Frames of chains of real consensus clients, as the loaders would return them."""

from __future__ import annotations

import json
import lzma
import math
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import polars as pl

from beaconframes.calendar import MAINNET

FOLDER = Path(__file__).parent.parent / "analysis" / "node_chains"
SLOTS = 8
CHAIN = replace(MAINNET, name="minimal", slots_per_epoch=SLOTS, sync_committee_size=32)
WEIGHTS = {"source": 14, "target": 26, "head": 14}
VOTES = tuple(WEIGHTS)
AMOUNTS = [
    *(f"attestation_{vote}_reward_gwei" for vote in VOTES),
    *(f"proposer_{kind}_inclusion_reward_gwei" for kind in ("attestation", "slashing", "sync")),
    "sync_committee_reward_gwei",
    "slashing_reward_gwei",
    *(f"attestation_{vote}_penalty_gwei" for vote in VOTES[:2]),
    "finality_delay_penalty_gwei",
    "sync_committee_penalty_gwei",
    "slashing_penalty_gwei",
]
IN_BLOCKS = {
    "proposer_attestations": ("proposer_attestation_inclusion_reward_gwei", None),
    "sync": ("sync_committee_reward_gwei", "sync_committee_penalty_gwei"),
    "proposer_slashing": ("proposer_slashing_inclusion_reward_gwei", "slashing_penalty_gwei"),
    "attester_slashing": ("proposer_slashing_inclusion_reward_gwei", "slashing_penalty_gwei"),
}
"""Columns of gains and losses for each part of the income inside blocks."""


def read_chain(name):
    """Return the values of a chain."""
    return json.loads(lzma.decompress((FOLDER / f"{name}.json.xz").read_bytes()))


def build_frames(name):
    """Return the arguments of `reconcile` for a chain."""
    values = read_chain(name)
    if name == "altair":
        values["slot_income"] = compute_slot_income(values)
    paid_out = ("withdrawals", "switch_to_compounding")
    in_blocks = [row for row in values["slot_income"] if row[1] not in paid_out]
    left = [(index, slot, -gwei) for slot, part, index, gwei in values["slot_income"]
            if part in paid_out]  # fmt: skip
    # At the fork to Electra, balances above the limit became pending deposits.
    left += [(index, slot, -gwei) for slot, index, gwei in values.get("fork_upgrade_moves", ())]
    moves = values.get("epoch_end_moves", [])
    return {
        "balances": build_balances(values),
        "income": build_income(values, in_blocks),
        "slot_income": build_frame(
            [(index, slot, gwei) for slot, _, index, gwei in in_blocks], "slot"
        ),
        "withdrawals": build_frame(left, "slot"),
        "deposits": build_frame(
            [(index, epoch, gwei) for epoch, part, index, gwei in moves
             if part == "pending_deposits"], "epoch",
        ),
        "consolidations": build_consolidations(moves),
    }  # fmt: skip


def build_frame(rows, when):
    """Return amounts by validator and slot or epoch."""
    return pl.DataFrame(rows, ["validator_index", when, "amount_gwei"], orient="row")


def build_balances(values):
    """Return the balances after the block of the first slot."""
    if "blocks" in values:
        by_epoch = {
            int(slot) // SLOTS: row for slot, row in values["balance_after_block_gwei"].items()
        }
    else:
        by_epoch = {int(e): row for e, row in values["balance_first_slot_post_block"].items()}
    rows = [(index, epoch, gwei) for epoch, row in by_epoch.items()
            for index, gwei in enumerate(row)]  # fmt: skip
    return pl.DataFrame(rows, ["validator_index", "epoch", "balance_gwei"], orient="row")


def build_income(values, in_blocks):
    """Return the income by epoch: of attestations by duty, of blocks by slot."""
    amounts = defaultdict(Counter)
    for slot, part, index, gwei in in_blocks:
        gain, loss = IN_BLOCKS[part]
        amounts[index, slot // SLOTS][gain if gwei > 0 else loss] += abs(gwei)
    attestations = (
        values.get("attestation_rewards_gwei") or (values["attestation_rewards_of_duty_epoch"])
    )
    for epoch, parts in attestations.items():
        for vote in VOTES:
            for index, gwei in enumerate(parts[vote]):
                kind = "reward" if gwei >= 0 else "penalty"
                amounts[index, int(epoch)][f"attestation_{vote}_{kind}_gwei"] += abs(gwei)
        for index, gwei in enumerate(parts["inactivity"]):
            amounts[index, int(epoch)]["finality_delay_penalty_gwei"] -= gwei
    penalties = [
        *((int(epoch), int(index), gwei)
          for epoch, row in values.get("correlation_penalties_at_end_of_epoch", {}).items()
          for index, gwei in row.items()),
        *((epoch, index, gwei) for epoch, part, index, gwei in values.get("epoch_end_moves", ())
          if part == "slashing_correlation"),
    ]  # fmt: skip
    for epoch, index, gwei in penalties:
        amounts[index, epoch]["slashing_penalty_gwei"] -= gwei
    rows = [(*key, *(row[name] for name in AMOUNTS)) for key, row in amounts.items()]
    return pl.DataFrame(rows, ["validator_index", "epoch", *AMOUNTS], orient="row")


def build_consolidations(moves):
    """Return the consolidations: equal amounts that leave one validator and reach another."""
    moved = [move for move in moves if move[1] == "pending_consolidations"]
    pairs = [
        (source[2], target[2], source[0], target[3])
        for source in moved
        for target in moved
        if target[3] > 0 and (source[0], -source[3]) == (target[0], target[3])
    ]
    names = ["source_index", "target_index", "epoch", "amount_gwei"]
    return pl.DataFrame(pairs, dict.fromkeys(names, pl.Int64), orient="row")


def compute_slot_income(values):
    """Return the income inside Altair blocks by the consensus specification.

    All 16 validators have an effective balance of 32 ETH throughout.
    """
    total = 16 * 32 * 10**9
    per_increment = 64 * 10**9 // math.isqrt(total)
    base, seat = 32 * per_increment, per_increment * 512 * 2 // 64 // SLOTS // 32
    has_block = sorted(block[0] for block in values["blocks"])
    flags = defaultdict(set)
    rows = []
    for slot, proposer, sync_bits, attestations in values["blocks"][1:]:
        bits = read_bits(sync_bits)
        members = values["sync_committee"][str(slot // SLOTS)]
        for index, has_signed in zip(members, bits, strict=True):
            rows.append([slot, "sync", index, seat if has_signed else -seat])
        rewards = bits.count(True) * (seat * 8 // 56)
        for voted, vote_bits, head, target in attestations:
            epoch, delay = voted // SLOTS, slot - voted
            is_target = target == find_block(has_block, epoch * SLOTS)
            is_head = is_target and head == find_block(has_block, voted)
            timely = {"source": delay <= math.isqrt(SLOTS), "target": is_target}
            timely["head"] = is_head and delay == 1
            committee = values["committees"][str(epoch)][voted % SLOTS]
            numerator = 0
            for index, is_set in zip(committee, read_bits(vote_bits), strict=False):
                new = {vote for vote in VOTES if is_set and timely[vote]} - flags[epoch, index]
                flags[epoch, index] |= new
                numerator += base * sum(WEIGHTS[vote] for vote in new)
            rewards += numerator // ((64 - 8) * 64 // 8)
        rows.append([slot, "proposer_attestations", proposer, rewards])
    return rows


def find_block(slots, slot):
    """Return the slot of the last block up to a slot."""
    return max(other for other in slots if other <= slot)


def read_bits(text):
    """Return the bits of hexadecimal bytes, the lowest of each byte first."""
    return [bool(byte >> bit & 1) for byte in bytes.fromhex(text) for bit in range(8)]
