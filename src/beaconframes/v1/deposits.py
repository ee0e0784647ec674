"""The deposits of validators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Unpack, overload

import polars as pl

from beaconframes.client import Eager, Explorer, Frame, Lazy, Pandas, Subjects, load
from beaconframes.endpoint import Endpoint, Identifiers, Wanted
from beaconframes.v1._deposits import Deposits

if TYPE_CHECKING:
    import pandas as pd

    from beaconframes.endpoint import Fields, View


@dataclass(frozen=True)
class Depositors(Identifiers):
    """Validators by index or public key, where the rows name the public key alone."""

    def wanted(self, batch: list[str]) -> tuple[Wanted, ...]:
        """Return the keys of *batch*; with an index among them, rows cannot be checked."""
        if all(item.startswith("0x") for item in batch):
            return (Wanted({self.column.name: batch}, every=False),)
        return ()

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the deposits for the named validators, also for keys without an index."""
        indices, keys = self.named(fields)
        known = (view.pubkey_of(index) for index in indices)
        found = {*keys, *(key for key in known if key is not None)}
        return rows.filter(pl.col(self.column.name).is_in(sorted(found)))


DEPOSITS = Endpoint(
    "deposits",
    route="GET /api/v1/validator/{validators}/deposits",
    table=Deposits,
    parameters=(Depositors("validators", Deposits.pubkey),),
)


@overload
def load_deposits(validators: Subjects, **options: Unpack[Eager]) -> pl.DataFrame: ...
@overload
def load_deposits(validators: Subjects, **options: Unpack[Lazy]) -> pl.LazyFrame: ...
@overload
def load_deposits(validators: Subjects, **options: Unpack[Pandas]) -> pd.DataFrame: ...
def load_deposits(
    validators: Subjects,
    *,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
    """Load the deposits of validators, one row per event of the deposit contract.

    100 validators a request. Top-ups are rows too, and so are deposits that came to nothing
    because their signature is not valid.

    Parameters
    ----------
    validators
        Indices or public keys: one, or a list, range or Series of them, mixed, of any length.
        A key that never became a validator has deposits all the same.
    explorer
        The explorer to ask; left out, the one of ``bf.connect`` or ``bf.local``.
    options
        See `load_validators`. A validator without deposits has no rows; that is no gap.

    Returns
    -------
    polars.DataFrame
        Sorted by ``block_number``, ``tx_index``, ``merkletree_index``. Amounts in gwei. Rows name
        the validator by ``pubkey`` alone, as the deposit contract does.

    Notes
    -----
    ``GET /api/v1/validator/{indexOrPubkey}/deposits``. More may come at any time.
    """
    return load(
        DEPOSITS,
        {"validators": validators},
        explorer=explorer,
        strict=strict,
        lazy=lazy,
        frame=frame,
        max_requests=max_requests,
    )
