"""The table of deposits, and what the registry proves about their signatures."""

from __future__ import annotations

import struct
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from beaconframes.beacon_node.tables.declaration import DEPOSIT, PAYMENTS, NodeTable
from beaconframes.beacon_node.tables.frames import build_rows
from beaconframes.v1._deposits import Deposits
from beaconframes.v1.deposit_origin import DepositOrigin

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import polars as pl

    from beaconframes.beacon_node.execution.deposit_events import Deposit
    from beaconframes.calendar import Chain


def build_deposits(
    deposits: Sequence[Deposit], chain: Chain, validity: Sequence[bool | None]
) -> pl.DataFrame:
    """Return deposits, one row per event; *validity* is that of each signature.

    See `find_validity`.
    """
    rows = [
        vars(deposit)
        | {
            "merkletree_index": "0x" + struct.pack("<Q", deposit.number).hex(),
            "valid_signature": is_valid,
        }
        for deposit, is_valid in zip(deposits, validity, strict=True)
    ]
    return build_rows(Deposits, rows, chain)


def find_validity(
    deposits: Sequence[Deposit],
    validators: Mapping[str, int],
    chain: Chain,
    *,
    genesis_count: int,
    earlier: Collection[str] | None = None,
    processed_count: int = 0,
    pending: Collection[str] = (),
) -> list[bool | None]:
    """Return whether the signature of each deposit is valid, as far as the registry proves it.

    The first deposit with a valid signature creates the validator; signatures of later deposits
    are not checked by the chain, so theirs is None. *earlier* has the public keys of all earlier
    deposits; without them, only deposits from number 0 on can be proven. *validators* has the
    index of each validator by its public key; *processed_count* is the number of deposits that the
    beacon chain has processed, from blocks that contain deposits, and *pending* has the public keys
    that wait in its queue. It has dropped the others that are in no validator.

    The first *genesis_count* validators were in the genesis state: on test networks without a
    deposit, so that only a deposit before genesis can have created one, and that as many deposits
    may never have been processed.
    """
    is_complete = earlier is not None or (bool(deposits) and deposits[0].number == 0)
    known = set(earlier or ())
    signed = defaultdict(set)
    for deposit in deposits:
        signed[deposit.pubkey].add(
            (deposit.withdrawal_credentials, deposit.amount_gwei, deposit.signature)
        )
    found: list[bool | None] = []
    for deposit in deposits:
        index = validators.get(deposit.pubkey)
        if index is None:
            is_dropped = genesis_count <= deposit.number < processed_count
            is_dropped &= deposit.pubkey not in pending
            found.append(False if is_dropped else None)
            continue
        is_early = deposit.time < chain.genesis.timestamp()
        is_candidate = is_complete and (is_early or index >= genesis_count)
        is_candidate &= deposit.pubkey not in known
        found.append(True if is_candidate and len(signed[deposit.pubkey]) == 1 else None)
    return found


TABLES: Final = tuple(NodeTable(each, DEPOSIT, PAYMENTS) for each in (Deposits, DepositOrigin))
