"""Slashings: the two messages that prove each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from beaconframes.simulator.derived.source import digest
from beaconframes.v1.attester_slashings import AttesterSlashings
from beaconframes.v1.proposer_slashings import ProposerSlashings

if TYPE_CHECKING:
    from beaconframes.schema import Table
    from beaconframes.simulator.derived.source import Source
    from beaconframes.simulator.preset import Ints

_HONEST: Final = 6  # others that signed the first attestation
_SIDE: Final = 2  # others that signed the second


def write(source: Source) -> None:
    """Write both kinds of slashings."""
    roots = source.blocks.select("slot", "block_root")
    events = (
        source.scan("slashing_events").collect()
        .join(roots, "slot", how="left", maintain_order="left")
        .sort("slot")
        .with_columns(block_index=pl.int_range(pl.len()).over("slot", "kind"))
    )  # fmt: skip
    for kind, table, prove in (
        ("attester", AttesterSlashings, _double_vote),
        ("proposer", ProposerSlashings, _double_proposal),
    ):
        rows = [
            {
                "block_slot": event["slot"],
                "block_root": event["block_root"],
                "block_index": event["block_index"],
                **prove(source, event),
            }
            for event in events.filter(kind=kind).to_dicts()
        ]
        source.add(table, _frame(source, table, rows))


def _frame(source: Source, table: type[Table], rows: list[dict[str, Any]]) -> pl.DataFrame:
    schema = {name: dtype for name, dtype in table.schema().items() if name != "time"}
    return pl.DataFrame(rows, schema=schema).with_columns(time=source.time_of("block_slot"))


def _double_vote(source: Source, event: dict[str, Any]) -> dict[str, Any]:
    """Return two votes of one slot for different blocks; only the slashed one signed both."""
    slot, slashed = event["offence_slot"], event["validator_index"]
    epoch = slot // source.chain.slots_per_epoch
    others = _others(source, epoch, slashed)
    signers = sorted([slashed, *others[:_HONEST]]), sorted([slashed, *others[_HONEST:]])
    rows: dict[str, Any] = {}
    before = max(epoch - 1, 0)
    for place, (indices, back) in enumerate(zip(signers, (0, 1), strict=True), start=1):
        vote = {
            "slot": slot,
            "index": 0,
            "indices": indices,
            "beacon_block_root": _newest(source, slot, back),
            "source_epoch": before,
            "source_root": _newest(source, before * source.chain.slots_per_epoch),
            "target_epoch": epoch,
            "target_root": _newest(source, epoch * source.chain.slots_per_epoch),
            "signature": digest(source.seed, f"vote {place} {slot} {slashed}", 96),
        }
        rows |= {f"attestation{place}_{name}": value for name, value in vote.items()}
    return rows


def _others(source: Source, epoch: int, slashed: int) -> Ints:
    """Return validators that were active, spread over all, without the slashed one."""
    end = pl.col("exit_epoch").fill_null(epoch + 1)
    active = source.validators.filter(
        (pl.col("activation_epoch") <= epoch) & (epoch < end),
        pl.col("validator_index") != slashed,
    )["validator_index"].to_numpy()
    step = len(active) // (_HONEST + _SIDE)
    return np.asarray(active[: step * (_HONEST + _SIDE) : step], np.int64)


def _newest(source: Source, slot: int, back: int = 0) -> str:
    """Return the root of the newest block in a slot, or of one further back."""
    slots = source.blocks["slot"].to_numpy()
    place = int(np.searchsorted(slots, slot, side="right")) - 1 - back
    if place < 0:
        return digest(source.seed, "before", 32)
    return str(source.blocks["block_root"][place])


def _double_proposal(source: Source, event: dict[str, Any]) -> dict[str, Any]:
    """Return the headers of the two blocks that the slashed one proposed in one slot."""
    slot = event["offence_slot"]
    twins = (
        source.scan("blocks").filter(slot=slot)
        .select("status", "block_root", "parent_root", "state_root", "signature").collect()
        .sort("status", descending=True)
    )  # fmt: skip
    rows: dict[str, Any] = {"proposer_index": event["validator_index"]}
    for place, block in enumerate(twins.to_dicts(), start=1):
        header = {
            "slot": slot,
            "parent_root": block["parent_root"],
            "state_root": block["state_root"],
            "body_root": digest(source.seed, f"body {block['block_root']}", 32),
            "signature": block["signature"],
        }
        rows |= {f"header{place}_{name}": value for name, value in header.items()}
    return rows
