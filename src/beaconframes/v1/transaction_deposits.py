"""Deposits of transactions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, Unpack, overload

from beaconframes.client import Eager, Explorer, Frame, Lazy, Pandas, load
from beaconframes.endpoint import TRANSACTION, Endpoint, Finality, Texts
from beaconframes.v1._deposits import Deposits

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


TRANSACTION_DEPOSITS = Endpoint(
    "transaction_deposits",
    route="GET /api/v1/eth1deposit/{txhash}",
    table=Deposits,
    parameters=(
        Texts(
            "tx_hashes",
            wire="txhash",
            pattern=TRANSACTION,
            what="a transaction: 0x and 64 hex digits",
            column=Deposits.tx_hash,
            error="invalid eth1 tx hash provided",
        ),
    ),
    finality=Finality.WHEN_PUBLISHED,
)


@overload
def load_transaction_deposits(
    tx_hashes: str | Iterable[str], **options: Unpack[Eager]
) -> pl.DataFrame: ...
@overload
def load_transaction_deposits(
    tx_hashes: str | Iterable[str], **options: Unpack[Lazy]
) -> pl.LazyFrame: ...
@overload
def load_transaction_deposits(
    tx_hashes: str | Iterable[str], **options: Unpack[Pandas]
) -> pd.DataFrame: ...
def load_transaction_deposits(
    tx_hashes: str | Iterable[str],
    *,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
    """Load the deposits of transactions, one row per deposit, in gwei.

    One request per transaction.

    Parameters
    ----------
    tx_hashes
        Hashes of execution transactions: one, or a list or Series of them.
    explorer, strict, lazy, frame, max_requests
        See `load_validators`. With ``strict=True``, transactions without deposits raise
        `MissingRows` instead of a warning.

    Returns
    -------
    polars.DataFrame
        Sorted by ``block_number``, ``tx_index``, ``merkletree_index``. One transaction may deposit
        for many validators.

    Notes
    -----
    ``GET /api/v1/eth1deposit/{txhash}``. Final as soon as its block is final, some minutes later.
    The response does not state how many deposits there are, so a missing one is not detected.
    """
    return load(
        TRANSACTION_DEPOSITS,
        {"tx_hashes": tx_hashes},
        explorer=explorer,
        strict=strict,
        lazy=lazy,
        frame=frame,
        max_requests=max_requests,
    )
