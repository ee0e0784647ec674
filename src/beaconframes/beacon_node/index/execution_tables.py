"""Tables of an index that an execution node answers: deposits, gas fees, balances of addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.beacon_node.execution.deposit_events import read_deposits
from beaconframes.beacon_node.tables.deposits import build_deposits, find_validity
from beaconframes.beacon_node.tables.readings import read_address_balances, read_gas_fees
from beaconframes.v1._deposits import Deposits
from beaconframes.v1.deposit_origin import DepositOrigin

if TYPE_CHECKING:
    from collections.abc import Collection

    import polars as pl

    from beaconframes.beacon_node.connection import NodeConnection
    from beaconframes.beacon_node.index.chain_index import ChainIndex
    from beaconframes.consensus.state import BeaconState

LAST_BLOCK, DEPOSIT_COUNT = "deposits_last_block", "deposits_count"


def write_readings(
    chain_index: ChainIndex,
    node: NodeConnection,
    tables: Collection[str],
    addresses: Collection[str],
) -> None:
    """Replace the *tables* that describe the present."""
    assert node.execution is not None
    found: dict[str, pl.DataFrame] = {}
    if "gas_fees" in tables:
        found["gas_fees"] = read_gas_fees(node.execution, chain_index.chain)
    if "address_balances" in tables:
        found["address_balances"] = read_address_balances(
            node.execution, addresses, chain_index.chain
        )
    chain_index.dataset.replace_tables(found)


def write_deposits(
    chain_index: ChainIndex, node: NodeConnection, state: BeaconState | None = None
) -> None:
    """Add the deposits that the execution chain has received since the last call.

    Deposits of the last blocks may still be reorganized: they are read when they are final. The
    *state* of the stored validators, if they are all, shows which deposits the chain has dropped.
    """
    assert node.execution is not None
    dataset = chain_index.dataset
    meta = dataset.meta
    first = int(meta.get(LAST_BLOCK, -1)) + 1
    final = node.read_final_block()
    if final is None or final[0] < first:
        return
    last, last_hash = final
    count = meta.get(DEPOSIT_COUNT)
    deposits = read_deposits(
        node.execution, node.deposit_contract, first, last, first_number=count, last_hash=last_hash
    )
    registry = dataset.scan("validators").select("pubkey", "validator_index", "activation_epoch")
    keys = registry.collect()
    validators = dict(keys.select("pubkey", "validator_index").iter_rows())
    initial = keys.filter(activation_epoch=0)["validator_index"].to_list()
    chain = chain_index.chain
    stored = None if count is None else dataset.scan(Deposits.table_name).select("pubkey")
    validity = find_validity(
        deposits,
        validators,
        chain,
        genesis_count=max(initial, default=-1) + 1,
        earlier=() if stored is None else stored.unique().collect()["pubkey"].to_list(),
        processed_count=0 if state is None else state.eth1_deposit_index,
        pending=()
        if state is None
        else {f"0x{key.tobytes().hex()}" for key in state.pending_deposits["pubkey"]},
    )
    rows = build_deposits(deposits, chain, validity)
    number = deposits[-1].number + 1 if deposits else count or 0
    with dataset.writing() as writer:
        writer.add(Deposits.table_name, rows)
        writer.set_meta({LAST_BLOCK: last, DEPOSIT_COUNT: number})
    depositors = (
        dataset.scan(Deposits.table_name)
        .select("from_address", "pubkey", "valid_signature")
        .unique()
        .join(registry, on="pubkey", how="left")
        .sort("from_address", "pubkey", "valid_signature")
        .select(DepositOrigin.schema().names())
    )
    dataset.replace_tables({DepositOrigin.table_name: depositors.collect()})
