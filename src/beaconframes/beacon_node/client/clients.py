"""Clients of consensus and execution nodes, and the flags with which they answer more."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Client:
    """A client, and the flags that make it answer more."""

    name: str
    archive_flag: str
    """Start the client with this flag to have old states, or old blocks with their receipts."""
    archive_note: str
    """What else is needed for old states, or for old blocks and logs."""
    api_flag: str = ""
    """The flag that turns the Beacon API on."""
    rewards_note: str = ""
    """Since when the client has the rewards routes."""

    @property
    def archive_hint(self) -> str:
        """Return how to start the client."""
        return f"start {self.name} with {self.archive_flag} ({self.archive_note})"


CONSENSUS_CLIENTS: Final = {
    client.name.lower(): client
    for client in (
        Client(
            "Lighthouse",
            "--reconstruct-historic-states",
            "after checkpoint sync, old states exist when state reconstruction has ended",
            "--http",
            "rewards routes are complete since v4.5.0, and since v7.0.0 after Electra",
        ),
        Client(
            "Prysm",
            "--enable-archive",
            "needs an empty data directory; older versions have --slots-per-archive-point=32, and "
            "need minutes to regenerate a state",
            "--http-host",
            "rewards routes exist since 2023",
        ),
        Client(
            "Teku",
            "--data-storage-mode=archive",
            "sync again from an empty data directory; a smaller --data-storage-archive-frequency "
            "makes old states faster",
            "--rest-api-enabled=true",
            "rewards routes are complete since the end of 2023",
        ),
        Client(
            "Nimbus",
            "--history=archive",
            "states older than the database need the era archive",
            "--rest",
            "attestation rewards exist in versions after August 2026",
        ),
        Client(
            "Lodestar",
            "--serveHistoricalState",
            "since v1.30.0; older versions store states every "
            "--chain.archiveStateEpochFrequency epochs",
            "--rest",
            "rewards routes exist since 2024, for states in the cache",
        ),
        Client(
            "Grandine",
            "--archive-storage",
            "states that were pruned before need a new sync",
            "--http-address",
            "see the documentation of the client",
        ),
    )
}


EXECUTION_CLIENTS: Final = {
    client.name.lower(): client
    for client in (
        Client(
            "Geth",
            "--history.chain=all",
            "--history.logs=0 makes old logs fast; blocks pruned before need a new sync",
        ),
        Client(
            "Nethermind",
            "--Sync.AncientBodiesBarrier=0 --Sync.AncientReceiptsBarrier=0",
            "without --History.Pruning; what was not downloaded needs a new sync",
        ),
        Client(
            "Besu",
            "--snapsync-synchronizer-pre-checkpoint-headers-only-enabled=false",
            "since v26.8.1 without effect: use --sync-mode=FULL; needs a new sync",
        ),
        Client(
            "Erigon",
            "--prune.mode=archive",
            "other modes have old receipts with --persist.receipts; needs a new sync",
        ),
        Client(
            "Reth",
            "--prune.receipts.before=0",
            "or without --full and --minimal; receipts that were pruned need a new sync",
        ),
    )
}


def find_client(version: str) -> Client | None:
    """Return the client of a *version* such as ``Lighthouse/v8.0.1-9f31cd0``; None if unknown."""
    word = re.match(r"[A-Za-z]+", version)
    return (CONSENSUS_CLIENTS | EXECUTION_CLIENTS).get(word[0].lower()) if word else None


def find_archive_hint(version: str, default: str = "use an archive node") -> str:
    """Return how to start the client of a *version*, or else the *default*."""
    client = find_client(version)
    return default if client is None else client.archive_hint
