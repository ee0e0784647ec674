"""A table that a dataset does not have: how a local explorer states it, and what a client says.

The response has a header of its own, so that bodies stay those of the API. A client makes the hint
from the kind of the dataset; it does not repeat text of the service.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from beaconframes.errors import BeaconframesError

ABSENT_TABLE_HEADER = "x-beaconframes-absent-table"
"""The header of an error that names the table and the kind of the dataset."""

DatasetKind: TypeAlias = Literal["dataset", "export", "simulation", "partial", "short"]

EXECUTION_TABLES = frozenset(
    {"deposit_origin", "deposits", "execution_blocks", "execution_performance", "yield_index"}
)
"""Tables that follow from the execution layer."""

DAY_TABLES = frozenset({"leaderboard", "validator_stats", "yield_index"})
"""Tables that have rows only if the dataset has a whole day."""

READING_TABLES = frozenset({"address_balances", "gas_fees"})
"""Tables that describe the present, which an index does not store."""

EXPLORER_TABLES = frozenset(
    {
        "entity_names",
        "machine_metrics",
        "machine_names",
        "names",
        "pool_stats",
        "pool_validators",
        "token_balances",
    }
)
"""Tables that no node has."""

NAME = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)

HINTS: dict[DatasetKind, str] = {
    "dataset": "If it was indexed from a node, run `beaconframes index ... --tables {table}`; "
    "otherwise load the rows from another service",
    "export": "Export it again with the table {table}, or load the rows from another service",
    "simulation": "Another version of beaconframes simulated it: simulate it again",
    "partial": "Request validators and epochs that it covers, or index or export the others",
    "short": "Add epochs until a whole day of the chain is final and complete",
}
"""What to do about the absent table, by kind of the dataset.

A partial one has the table, but not all rows that an answer is computed from. A short one has no
whole day of the chain, so that tables of days have no row.
"""


@dataclass(frozen=True)
class AbsentTable:
    """A table that a dataset of some kind does not have, or not as much of it as is needed."""

    table: str
    kind: DatasetKind = "dataset"

    @property
    def message(self) -> str:
        """Return what is wrong."""
        if self.kind == "partial":
            return f"this dataset has {self.table} for a part of the request only"
        if self.kind == "short":
            return f"this dataset has no {self.table}, because it has no whole day of the chain"
        return f"this dataset has no {self.table}"

    @property
    def hint(self) -> str:
        """Return what to do."""
        if self.kind == "dataset" and self.table in EXECUTION_TABLES:
            return (
                "A beacon node alone does not have it. Index the chain with an execution node too, "
                "or load the rows from another service"
            )
        if self.kind == "dataset" and self.table in READING_TABLES:
            return (
                "It describes the present. Load it from an execution node with bf.node, or from "
                "another service"
            )
        if self.kind == "dataset" and self.table in EXPLORER_TABLES:
            return "No node has it. Load the rows from another service"
        return HINTS[self.kind].format(table=self.table)

    def encode(self) -> str:
        """Return the value of the header."""
        return f"{self.table} {self.kind}"

    @classmethod
    def parse(cls, header: str) -> AbsentTable | None:
        """Return the table that a header names; None for an invalid header."""
        table, _, kind = header.partition(" ")
        if not NAME.fullmatch(table) or kind not in get_args(DatasetKind):
            return None
        return cls(table, cast("DatasetKind", kind))


class RequestRefused(BeaconframesError):
    """A request that the local explorer refuses; the text is the error of the real service."""


class ObjectNotFound(RequestRefused):
    """A request for an object that does not exist."""


class SlotNotFinal(ObjectNotFound):
    """A request for a slot that is not finalized; the service states so in its answer."""


class TableAbsent(BeaconframesError):
    """A request for rows of a table that the dataset does not have, whatever its fields are."""

    def __init__(self, absent: AbsentTable) -> None:
        super().__init__(absent.message, hint=absent.hint)
        self.absent = absent
