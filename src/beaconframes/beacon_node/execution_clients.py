"""Execution clients, and the flags with which they store old blocks, receipts and logs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class ExecutionClient:
    """An execution client, and the flags that make it answer for old blocks."""

    name: str
    history_flag: str
    """Start the client with this flag to have the receipts of any block."""
    history_note: str
    """What else is needed for old blocks and logs."""


EXECUTION_CLIENTS: Final = {
    client.name.lower(): client
    for client in (
        ExecutionClient(
            "Geth",
            "--history.chain=all",
            "--history.transactions=0 also finds single receipts older than a year, and "
            "--history.logs=0 makes old logs fast; blocks pruned before need a new sync",
        ),
        ExecutionClient(
            "Nethermind",
            "--Sync.AncientBodiesBarrier=0 --Sync.AncientReceiptsBarrier=0",
            "without --History.Pruning; what was not downloaded needs a new sync",
        ),
        ExecutionClient(
            "Besu",
            "--snapsync-synchronizer-pre-checkpoint-headers-only-enabled=false",
            "since v26.8.1 without effect: use --sync-mode=FULL; needs a new sync",
        ),
        ExecutionClient(
            "Erigon",
            "--prune.mode=archive",
            "other modes have old receipts with --persist.receipts; needs a new sync",
        ),
        ExecutionClient(
            "Reth",
            "--prune.receipts.before=0",
            "or without --full and --minimal; receipts that were pruned need a new sync",
        ),
    )
}


def find_execution_client(version: str) -> ExecutionClient | None:
    """Return the client of a *version* such as ``Geth/v1.16.7-stable``; None if unknown."""
    word = re.match(r"[A-Za-z]+", version)
    return EXECUTION_CLIENTS.get(word[0].lower()) if word else None
