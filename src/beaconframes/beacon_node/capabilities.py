"""What a node can answer: the needs of each table, and the abilities that were found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from beaconframes.answers.selection import find_stored_table
from beaconframes.beacon_node.chain.reader import MANY_VALIDATORS
from beaconframes.beacon_node.client.clients import find_archive_hint
from beaconframes.beacon_node.tables import LARGE_TABLES, TABLES_BY_NAME
from beaconframes.beacon_node.tables.balance_moves import SlotIncome
from beaconframes.beacon_node.tables.declaration import INCOME
from beaconframes.derive.derivations import DERIVATIONS
from beaconframes.summary import render_html, render_text
from beaconframes.v1 import ENDPOINTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from beaconframes.beacon_node.tables.declaration import Needs

ABILITIES: Final = {
    "blocks": "blocks",
    "states": "validators of old states",
    "ssz": "SSZ states",
    "attestation_rewards": "attestation rewards",
    "block_rewards": "block rewards",
    "sync_rewards": "sync committee rewards",
    "duties": "committees of old epochs",
    "proposers": "proposer duties of old epochs",
    "pending": "pending queues",
    "execution": "an execution node",
}
"""What a node may be able to answer, by name: in words."""

NEEDS: Final[Mapping[str, Needs]] = {
    endpoint.name: TABLES_BY_NAME[name].needs
    for endpoint in ENDPOINTS
    if (name := find_stored_table(endpoint)) in TABLES_BY_NAME
} | {SlotIncome.table_name: INCOME}
"""What each loader needs of a node, and the one table without a loader that users read."""

WITHOUT_STATES: Final = frozenset({"blocks", "execution", "pending"})
"""What a node can answer of old epochs without their states."""

WHOLE_REGISTRY = frozenset(
    {
        "validator_queue",
        "withdrawal_credentials",
        *(each.table.table_name for each in DERIVATIONS if each.needs_all_validators),
    }
)
"""Tables that follow from all validators of the chain, whichever rows are requested."""

_REASONS: Final = {
    "names": "names are not part of the beacon chain: use the explorer API",
    "pool_stats": "pools are labels of the explorer: use the explorer API",
    "pool_validators": "pools are labels of the explorer: use the explorer API",
    "token_balances": "a node cannot list all tokens of an address: use the explorer API",
}


def find_absent(names: Iterable[str]) -> dict[str, str]:
    """Return those of these loaders that no node can answer, with the reason."""
    default = "no table of a node has its rows: use the explorer API"
    return {name: _REASONS.get(name, default) for name in names if name not in NEEDS}


NEVER: Final = find_absent(endpoint.name for endpoint in ENDPOINTS)
"""Tables that no node has, with the reason."""

INDEX_HINT: Final = "Index them first: bf.index(node, folder), and load with bf.open(folder)"


class TableAbility(NamedTuple):
    """Whether a node can answer a table: since which epoch, or why not."""

    table: str
    oldest_epoch: int | None
    """The first epoch that it can answer; None if it cannot answer the table."""
    reason: str
    """Why not, or why not earlier; empty if it can answer the whole chain."""


@dataclass(frozen=True)
class Capabilities:
    """What a node can answer; prints as a table in a terminal or a notebook.

    ``oldest`` has the first epoch of each ability that the node has, by the names of `ABILITIES`;
    ``reasons`` says why it does not have the others, or not since the start of the chain.
    """

    url: str
    client_version: str
    chain: str
    head_slot: int
    head_epoch: int
    finalized_epoch: int
    first_epoch: int = 0
    """The first epoch of the chain that can be answered at all: that of Altair."""
    sync_state: str = "synchronized"
    """Whether the node is synchronized, or how far it is behind."""
    execution_version: str = ""
    oldest: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    has_holes: bool = False
    """Whether states between old ones are missing."""
    corrected: Mapping[str, int] = field(default_factory=dict)
    has_many_validators: bool = False
    """Whether an index leaves out its largest tables by default."""
    margin: int = 1
    """Epochs from the oldest state on that cannot be answered, although their states are there.

    The amounts of an epoch need the state before it, or the rewards that its start pays.
    """
    loads_chosen_validators: bool = False
    """Whether loads never have all validators of the chain, which only an index has."""

    @property
    def oldest_state_epoch(self) -> int | None:
        """Return the first epoch from which all states are there, None without any."""
        epochs = [self.oldest[name] for name in ("ssz", "states") if name in self.oldest]
        return min(epochs, default=None)

    @property
    def archive_hint(self) -> str:
        """Return the flag with which this client stores old states."""
        return find_archive_hint(self.client_version)

    @property
    def tables(self) -> tuple[TableAbility, ...]:
        """Return for each table since when the node can answer it, or why not."""
        return tuple(self.find_table(table) for table in sorted(NEEDS.keys() | NEVER.keys()))

    def find_table(self, table: str) -> TableAbility:
        """Return since when the node can answer a *table* or a loader, or why not."""
        if table in NEVER:
            return TableAbility(table, None, NEVER[table])
        needs = TABLES_BY_NAME[table].needs if table in TABLES_BY_NAME else NEEDS[table]
        return self._assess_table(table, needs)

    @property
    def absent(self) -> dict[str, list[str]]:
        """Return the tables that the node cannot answer, by the reason."""
        found: dict[str, list[str]] = {}
        for each in self.tables:
            if each.oldest_epoch is None:
                found.setdefault(each.reason, []).append(each.table)
        return found

    def lines(self) -> list[tuple[str, str]]:
        """Return the facts, each with its label."""
        lines = [
            ("client", self.client_version),
            ("chain", self.chain),
            ("head", f"slot {self.head_slot:,}, epoch {self.head_epoch:,}, {self.sync_state}"),
            ("finalized", f"epoch {self.finalized_epoch:,}"),
            ("oldest state", self._describe_oldest()),
            ("execution", self.execution_version or f"none: {self.reasons.get('execution')}"),
        ]
        refused: dict[str, list[str]] = {}
        for name, reason in self.reasons.items():
            if name not in self.oldest and name != "execution":
                refused.setdefault(reason, []).append(ABILITIES[name])
        lines += [("missing", f"{', '.join(names)}: {reason}") for reason, names in refused.items()]
        if self.corrected:
            lines.append(("corrected", ", ".join(sorted(self.corrected))))
        tables = self.tables
        for epoch in sorted({each.oldest_epoch for each in tables} - {None}):  # type: ignore[type-var]
            names = ", ".join(each.table for each in tables if each.oldest_epoch == epoch)
            lines.append((f"since epoch {epoch:,}", names))
        if self.has_many_validators:
            left_out = ", ".join(LARGE_TABLES)
            many = (
                f'without {left_out}, unless tables="all": more than {MANY_VALIDATORS:,} validators'
            )
            lines.append(("an index", many))
        lines += [
            ("not available", f"{', '.join(names)}: {reason}")
            for reason, names in self.absent.items()
        ]
        return lines

    def __str__(self) -> str:
        """Return the facts, one a line."""
        return render_text(f"Beacon node {self.url}", self.lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render_html(f"Beacon node {self.url}", self.lines())

    def _describe_oldest(self) -> str:
        oldest = self.oldest_state_epoch
        if oldest is None:
            return f"none: {self.archive_hint}"
        if oldest <= self.first_epoch:
            return f"epoch {oldest:,}, the whole chain"
        holes = ", with holes before it" if self.has_holes else ""
        return f"epoch {oldest:,}{holes}; for older ones {self.archive_hint}"

    def _assess_table(self, table: str, alternatives: Needs) -> TableAbility:
        best: int | None = None
        used: tuple[str, ...] = ()
        for needs in alternatives:
            if any(name not in self.oldest for name in needs):
                continue
            if "genesis" in needs and any(self.oldest[name] for name in needs):
                continue
            epoch = max(map(self._find_start, needs), default=0)
            if best is None or epoch < best:
                best, used = epoch, needs
        if best is None:
            return TableAbility(table, None, self._explain(alternatives))
        if self.loads_chosen_validators and table in WHOLE_REGISTRY:
            return TableAbility(table, None, f"needs all validators of the chain. {INDEX_HINT}")
        best = max(best, self.first_epoch)
        is_whole = all(self.oldest[name] <= self.first_epoch for name in used)
        reason = "" if is_whole else f"for older epochs {self.archive_hint}"
        return TableAbility(table, best, reason)

    def _find_start(self, ability: str) -> int:
        """Return the first epoch that follows from an ability."""
        oldest = self.oldest[ability]
        # A chain that began before Altair has no usable state before its first epoch.
        return oldest if ability in WITHOUT_STATES or oldest == 0 else oldest + self.margin

    def _explain(self, alternatives: Needs) -> str:
        """Return what the node is missing of the first *alternatives*."""
        missing = [
            [name for name in needs if name not in self.oldest and name != "genesis"]
            for needs in alternatives[:2]
        ]
        texts = [", ".join(ABILITIES[name] for name in names) for names in missing if names]
        known = [self.reasons[name] for names in missing for name in names if name in self.reasons]
        return f"needs {'; or '.join(dict.fromkeys(texts))}" + (f": {known[0]}" if known else "")
