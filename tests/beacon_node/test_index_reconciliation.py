"""Frames of an index, with its tables that no endpoint serves, explain every change of balance."""

from __future__ import annotations

import polars as pl
import pytest

import beaconframes as bf

from ..support.node_index import index_chain
from .conftest import UNTIL

AMOUNTS = ["slot", "validator_index", "amount_gwei"]


def reconcile(folder, last, *, by_slot):
    """Return the explained changes up to the epoch before the last, with or without slot income."""
    with bf.local(folder) as local:
        validators = bf.Dataset.open(folder).scan("validators").collect()["validator_index"]
        loaded = [
            load(validators, since=0, until=last)
            for load in (bf.load_balance_history, bf.load_income_history)
        ]
        withdrawals = bf.load_validator_withdrawals(validators, since=0, until=last)
        chain = local.chain
    dataset = bf.Dataset.open(folder)
    moves = [dataset.scan(name).select(AMOUNTS) for name in ("deposit_events", "transfer_events")]
    return bf.analysis.reconcile(
        *loaded,
        slot_income=dataset.scan("slot_income") if by_slot else None,
        deposits=pl.concat(moves).collect(),
        withdrawals=withdrawals,
        chain=chain,
    )


@pytest.mark.more
@pytest.mark.parametrize("by_slot", [True, False])
def test_every_change_of_an_index_is_explained(electra_folder, by_slot):
    """Fork to Electra, deposits, exits, a switch and slashings, with both readings of blocks."""
    rows = reconcile(electra_folder, UNTIL, by_slot=by_slot)

    assert rows.filter(pl.col("unexplained_gwei") != 0).is_empty()
    assert rows.height > 300
    assert rows["until_epoch"].max() == UNTIL - 1  # The last change needs the next block.
    assert (rows["attestations_settle"] == 1).all()
    is_exact = rows["open_start_slot"].is_null() & rows["open_end_slot"].is_null()
    assert is_exact.all() or not by_slot


@pytest.mark.long
@pytest.mark.parametrize(("name", "count"), [("capella", 350), ("electra", 1600)])
def test_every_change_of_longer_chains_is_explained(tmp_path, name, count):
    """Withdrawals, consolidations, correlation penalties, leaks."""
    index_chain(name, tmp_path / name, until=26)
    exact = reconcile(tmp_path / name, 26, by_slot=True)

    assert exact.height > count
    for rows in (exact, reconcile(tmp_path / name, 26, by_slot=False)):
        assert rows.filter(pl.col("unexplained_gwei") != 0).is_empty()
