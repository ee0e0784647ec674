"""Validators by their withdrawal credentials."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from beaconframes.client import Values, loader
from beaconframes.endpoint import ADDRESS, CREDENTIALS, ENS_NAME, AddressOrName, Endpoint, Pages
from beaconframes.schema import Count, Hex, Table, Text

PATH_FIELD = "withdrawalCredentialsOrEth1address"


class WithdrawalCredentials(Table):
    """Validators by withdrawal credentials. One row per validator."""

    credentials = Text(
        "Requested credentials, address or name. An address stands for both kinds of "
        "credentials that pay to it, 0x01 and 0x02.",
        key=True,
        context=f"request.{PATH_FIELD}",
    )
    validator_index = Count("Validator.", key=True, wire=("validatorindex", "validator_index"))
    pubkey = Hex("BLS public key.", wire=("publickey", "public_key"), size=48)


@dataclass(frozen=True)
class Credentials(AddressOrName):
    """Credentials, or an address for both kinds of credentials that pay to it."""


WITHDRAWAL_CREDENTIALS = Endpoint(
    "withdrawal_credentials",
    route="GET /api/v1/validator/withdrawalCredentials/{withdrawalCredentialsOrEth1address}",
    table=WithdrawalCredentials,
    parameters=(
        Credentials(
            "credentials",
            wire=PATH_FIELD,
            pattern=f"{CREDENTIALS}|{ADDRESS}|{ENS_NAME}",
            what="withdrawal credentials of 64 hex digits, an address of 40, or a name in .eth",
            error="invalid withdrawal credentials or eth1 address provided",
            matches=WithdrawalCredentials.credentials.name,
            order=("validator_index",),
        ),
    ),
    pagination=Pages(at_most=200, default=10),
)


@loader(WITHDRAWAL_CREDENTIALS)
def load_withdrawal_credentials(credentials: str | Iterable[str]) -> Values:
    """Load the validators with given withdrawal credentials or addresses, one row per validator.

    200 validators per request.

    Parameters
    ----------
    credentials
        Credentials of 64 hex digits, an address of 40, or a name that ends in ``.eth``; or a list
        of them. An address stands for all credentials that pay to it.

    Returns
    -------
    polars.DataFrame
        Sorted by ``credentials``, ``validator_index``. Credentials without validators have no rows,
        and are not reported as missing.

    Notes
    -----
    ``GET /api/v1/validator/withdrawalCredentials/{withdrawalCredentialsOrEth1address}``. Never
    final: validators can change their credentials, and more validators can follow.
    """
    return {"credentials": credentials}
