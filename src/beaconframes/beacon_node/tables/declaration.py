"""The declaration of a table of a node: its columns, its unit, what it needs, and its rows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

from beaconframes.dataset import Grid

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from beaconframes.beacon_node.tables.epoch_data import EpochData
    from beaconframes.schema import Table

Needs: TypeAlias = tuple[tuple[str, ...], ...]
"""Names of `ABILITIES`. One of the alternatives suffices; ``genesis``: a replay from epoch 0."""

ROUTE_NEEDS: Final = ("states", "attestation_rewards", "block_rewards", "sync_rewards", "proposers")
"""What a node must have, so that income can be read from the rewards routes."""
REPLAY_NEEDS: Final = ("blocks", "states", "duties", "genesis")
"""What a node must have since genesis, so that its blocks can be replayed."""

BLOCKS: Final[Needs] = (("blocks",),)
"""Tables of an epoch that need blocks alone are stored together."""
INCOME: Final[Needs] = (("blocks", "ssz"), ROUTE_NEEDS, REPLAY_NEEDS)
"""Tables of an epoch that need its amounts are built, reconciled and stored together."""
DUTIES: Final[Needs] = (("blocks", "ssz"), ("blocks", "duties"))
PAYMENTS: Final[Needs] = (("blocks", "execution"),)
EXECUTION: Final[Needs] = (("execution",),)
NOTHING: Final[Needs] = ((),)

HEAD, LOAD, DEPOSIT = "head", "load", "deposit"


@dataclass(frozen=True)
class NodeTable:
    """A table of a node."""

    table: type[Table]
    unit: str
    """How it is written: by the epochs of a column (an epoch, a slot or a period; a day, if it is
    derived), with each head (`HEAD`), for each load (`LOAD`), or by new deposits (`DEPOSIT`)."""
    needs: Needs
    rows: Callable[[EpochData], pl.DataFrame] | None = None
    """Return the rows of an epoch; None if the table is not written epoch by epoch."""
    _: KW_ONLY
    is_large: bool = False
    """Whether an index of many validators leaves it out by default."""

    @property
    def name(self) -> str:
        """Return the name of the stored table."""
        return self.table.table_name

    @cached_property
    def by_validator(self) -> bool:
        """Return whether an index of chosen validators has rows of these only.

        What blocks include is that of the whole chain.
        """
        return self.needs in (INCOME, DUTIES) and "validator_index" in self.table.key()

    def grid(self, *, chosen: bool) -> Grid:
        """Return the grid of the table, in an index of *chosen* validators or of all."""
        subject = "validator_index" if chosen and self.by_validator else None
        key = sorted(self.table.key(), key=lambda name: subject not in (None, name))
        return Grid(subject, self.unit, tuple(key))
