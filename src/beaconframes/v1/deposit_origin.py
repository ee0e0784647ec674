"""Validators by the address that deposited for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, Unpack, overload

from beaconframes.client import Eager, Explorer, Frame, Lazy, Pandas, load
from beaconframes.endpoint import ADDRESS, ENS_NAME, Endpoint, Pages
from beaconframes.schema import Count, Flag, Hex, RequestField, Table
from beaconframes.v1._addresses import Named
from beaconframes.v1._validator_lookup import null_placeholder_indices

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class DepositOrigin(Table):
    """Validators by depositor. One row per public key and validity of its signatures."""

    from_address = RequestField(
        "Address, or name of one, that was asked for: it sent the deposits.",
        key=True,
        wire="eth1address",
    )
    pubkey = Hex(
        "BLS public key that was deposited for.", key=True, wire=("public_key", "publickey")
    )
    valid_signature = Flag(
        "Whether the signature of its deposits is valid; a key with both kinds has two rows.",
        key=True,
    )
    validator_index = Count(
        "Validator; null while the deposit has made none.",
        wire=("validator_index", "validatorindex"),
    )

    public_spelling = -1


DEPOSIT_ORIGIN = Endpoint(
    "deposit_origin",
    route="GET /api/v1/validator/eth1/{eth1address}",
    table=DepositOrigin,
    parameters=(
        Named(
            "address",
            wire="eth1address",
            pattern=f"{ADDRESS}|{ENS_NAME}",
            what="an address of 40 hex digits, or a name that ends in .eth",
            error="invalid eth1 address provided",
            matches=DepositOrigin.from_address.name,
            order=("validator_index", "pubkey", "valid_signature"),
        ),
    ),
    pagination=Pages(at_most=2000, default=2000),
)


@overload
def load_deposit_origin(address: str | Iterable[str], **options: Unpack[Eager]) -> pl.DataFrame: ...
@overload
def load_deposit_origin(address: str | Iterable[str], **options: Unpack[Lazy]) -> pl.LazyFrame: ...
@overload
def load_deposit_origin(
    address: str | Iterable[str], **options: Unpack[Pandas]
) -> pd.DataFrame: ...
def load_deposit_origin(
    address: str | Iterable[str],
    *,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
    """Load the validators that an address deposited for, one row per public key and validity.

    2,000 keys a request.

    Parameters
    ----------
    address
        An address of 40 hex digits or a name that ends in ``.eth``, or a list of them.
    explorer
        The explorer to ask; left out, the one of ``bf.connect`` or ``bf.local``.
    options
        See `load_validators`. An address that deposited nothing has no rows, and is not missing.

    Returns
    -------
    polars.DataFrame
        Sorted by ``from_address``, ``pubkey``, ``valid_signature``. A key that got deposits with
        valid and with invalid signatures has two rows. The sender of the transaction counts, not
        whom it acted for. Services have written 0 for a key that is no validator yet: where a 0
        comes, one request more finds out whose it is, and all others are null.

    Notes
    -----
    ``GET /api/v1/validator/eth1/{eth1address}``. Never final: more may be deposited.
    """
    rows = load(
        DEPOSIT_ORIGIN,
        {"address": address},
        explorer=explorer,
        strict=strict,
        lazy=lazy,
        frame=frame,
        max_requests=max_requests,
    )
    return null_placeholder_indices(
        rows, explorer=explorer, strict=strict, max_requests=max_requests
    )
