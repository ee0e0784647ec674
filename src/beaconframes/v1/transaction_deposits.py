"""Deposits of transactions."""

from __future__ import annotations

from collections.abc import Iterable

from beaconframes.client import Values, loader
from beaconframes.endpoint import TRANSACTION, Endpoint, Finality, Texts
from beaconframes.v1._deposits import Deposits

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


@loader(TRANSACTION_DEPOSITS, missing="transactions without deposits")
def load_transaction_deposits(tx_hashes: str | Iterable[str]) -> Values:
    """Load the deposits of transactions, one row per deposit, in gwei.

    One request per transaction.

    Parameters
    ----------
    tx_hashes
        Hashes of execution transactions: one, or a list or Series of them.

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
    return {"tx_hashes": tx_hashes}
