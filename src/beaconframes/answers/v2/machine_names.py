"""The machines of a fictional operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.endpoint.absent_table import AbsentTable, TableAbsent

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View

NAMES = ("attic-node", "basement-node", "garden shed (backup)")


def require_simulated(view: View, table: str) -> None:
    """Raise TableAbsent for a real chain, which has no fictional operator."""
    if not view.is_simulated:
        raise TableAbsent(AbsentTable(table))


def derive_rows(view: View) -> pl.LazyFrame:
    """Return the names of the machines, the same for every API key."""
    require_simulated(view, "machine_names")
    return pl.LazyFrame({"machine": NAMES})
