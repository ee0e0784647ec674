"""The machines of a fictional operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from beaconframes.endpoint import View

NAMES = ("attic-node", "basement-node", "garden shed (backup)")


def derive_rows(view: View) -> pl.LazyFrame:  # noqa: ARG001 - the signature of all tables
    """Return the names of the machines, the same for every API key."""
    return pl.LazyFrame({"machine": NAMES})
