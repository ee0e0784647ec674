"""Validators by the address of their depositor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from beaconframes.client import Explorer, Frame, load
from beaconframes.endpoint import ADDRESS, ENS_NAME, AddressOrName, Endpoint, Pages
from beaconframes.schema import Count, Flag, Hex, Table, Text
from beaconframes.v1._validator_lookup import null_placeholder_indices


class DepositOrigin(Table):
    """Validators by depositor. One row per public key and validity of the signatures."""

    from_address = Text(
        "Requested address or name: the sender of the deposits.",
        key=True,
        context="request.eth1address",
    )
    pubkey = Hex(
        "BLS public key of the validator.", key=True, wire=("public_key", "publickey"), size=48
    )
    valid_signature = Flag(
        "Whether the signature of the deposits is valid; a public key with both kinds has two"
        " rows. From your own node null, unless the registry proves it.",
        key=True,
        nullable=True,
    )
    validator_index = Count(
        "Validator; null until the deposit creates one.",
        wire=("validator_index", "validatorindex"),
        nullable=True,
    )

    public_spelling = -1


DEPOSIT_ORIGIN = Endpoint(
    "deposit_origin",
    route="GET /api/v1/validator/eth1/{eth1address}",
    table=DepositOrigin,
    parameters=(
        AddressOrName(
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

    2,000 public keys per request.

    Parameters
    ----------
    address
        An address of 40 hex digits or a name that ends in ``.eth``, or a list of them.
    explorer, strict, lazy, frame, max_requests
        See `load_validators`.

    Returns
    -------
    polars.DataFrame
        Sorted by ``from_address``, ``pubkey``, ``valid_signature``. A public key with valid and
        invalid signatures has two rows. The address is the sender of the transaction, even if it
        acted for another. An address without deposits has no rows, and is not reported as missing.
        Some services write index 0 for a public key that is not a validator yet: one more request
        then finds the key of validator 0, and every other 0 becomes null.

    Notes
    -----
    ``GET /api/v1/validator/eth1/{eth1address}``. Never final: more deposits are possible at any
    time.
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
