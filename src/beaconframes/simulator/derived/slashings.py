"""Slashings: the two conflicting messages of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from beaconframes.derive.validator_tables import is_active
from beaconframes.simulator import drawn_hex
from beaconframes.simulator.drawn_hex import BLOCK_ROOT, number_before
from beaconframes.simulator.hex_text import hash_bytes
from beaconframes.v1.attester_slashings import AttesterSlashings
from beaconframes.v1.proposer_slashings import ProposerSlashings

if TYPE_CHECKING:
    from beaconframes.consensus.registry import Ints
    from beaconframes.schema import Table
    from beaconframes.simulator.derived.chain_data import ChainData

_FIRST_SIGNERS: Final = 6  # other validators that signed the first attestation
_SECOND_SIGNERS: Final = 2  # other validators that signed the second


def write_tables(data: ChainData) -> None:
    """Write both kinds of slashings."""
    roots = data.blocks.select("slot", "block_root")
    events = (
        data.scan("slashing_events").collect()
        .join(roots, "slot", how="left", maintain_order="left")
        .sort("slot")
        .with_columns(block_index=pl.int_range(pl.len()).over("slot", "kind"))
    )  # fmt: skip
    for kind, table, build_evidence in (
        ("attester", AttesterSlashings, _build_double_vote),
        ("proposer", ProposerSlashings, _build_double_proposal),
    ):
        rows = [
            {
                "block_slot": event["slot"],
                "block_root": event["block_root"],
                "block_index": event["block_index"],
                **build_evidence(data, event),
            }
            for event in events.filter(kind=kind).to_dicts()
        ]
        data.add(table, _build_frame(data, table, rows))


def _build_frame(data: ChainData, table: type[Table], rows: list[dict[str, Any]]) -> pl.DataFrame:
    schema = {name: dtype for name, dtype in table.schema().items() if name != "time"}
    return pl.DataFrame(rows, schema=schema).with_columns(time=data.time_of("block_slot"))


def _build_double_vote(data: ChainData, event: dict[str, Any]) -> dict[str, Any]:
    """Return two attestations of one slot for different blocks, both signed by one validator."""
    slot, slashed = event["offence_slot"], event["validator_index"]
    epoch = slot // data.chain.slots_per_epoch
    others = _find_other_signers(data, epoch, slashed)
    signers = (
        sorted([slashed, *others[:_FIRST_SIGNERS]]),
        sorted([slashed, *others[_FIRST_SIGNERS:]]),
    )
    rows: dict[str, Any] = {}
    before = max(epoch - 1, 0)
    for number, (indices, back) in enumerate(zip(signers, (0, 1), strict=True), start=1):
        vote = {
            "slot": slot,
            "index": 0,
            "indices": indices,
            "beacon_block_root": _find_newest_root(data, slot, back),
            "source_epoch": before,
            "source_root": _find_newest_root(data, before * data.chain.slots_per_epoch),
            "target_epoch": epoch,
            "target_root": _find_newest_root(data, epoch * data.chain.slots_per_epoch),
            "signature": hash_bytes(data.seed, f"vote {number} {slot} {slashed}", 96),
        }
        rows |= {f"attestation{number}_{name}": value for name, value in vote.items()}
    return rows


def _find_other_signers(data: ChainData, epoch: int, slashed: int) -> Ints:
    """Return active validators at equal distances, without the slashed validator."""
    is_other = pl.col("validator_index") != slashed
    active = data.validators.filter(is_active(epoch), is_other)["validator_index"].to_numpy()
    step = len(active) // (_FIRST_SIGNERS + _SECOND_SIGNERS)
    return np.asarray(active[: step * (_FIRST_SIGNERS + _SECOND_SIGNERS) : step], np.int64)


def _find_newest_root(data: ChainData, slot: int, back: int = 0) -> str:
    """Return the root of the newest block at a slot, or of the block *back* blocks earlier."""
    slots = data.blocks["slot"].to_numpy()
    position = int(np.searchsorted(slots, slot, side="right")) - 1 - back
    if position < 0:
        before = number_before(data.first * data.chain.slots_per_epoch)
        return str(drawn_hex.draw(data.seed, BLOCK_ROOT, [before]).item())
    return str(data.blocks["block_root"][position])


def _build_double_proposal(data: ChainData, event: dict[str, Any]) -> dict[str, Any]:
    """Return the headers of the two blocks that the slashed validator proposed in one slot."""
    slot = event["offence_slot"]
    blocks = (
        data.scan("blocks").filter(slot=slot)
        .select("status", "block_root", "parent_root", "state_root", "signature").collect()
        .sort("status", descending=True)
    )  # fmt: skip
    rows: dict[str, Any] = {"proposer_index": event["validator_index"]}
    for number, block in enumerate(blocks.to_dicts(), start=1):
        header = {
            "slot": slot,
            "parent_root": block["parent_root"],
            "state_root": block["state_root"],
            "body_root": hash_bytes(data.seed, f"body {block['block_root']}", 32),
            "signature": block["signature"],
        }
        rows |= {f"header{number}_{name}": value for name, value in header.items()}
    return rows
