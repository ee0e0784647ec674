"""Token balances of an address."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from beaconframes.client import Values, loader
from beaconframes.endpoint import ADDRESS, AddressOrName, Endpoint, Pages, identifiers
from beaconframes.schema import DecimalPlaces, DecimalText, Hex, Table, Text

if TYPE_CHECKING:
    from beaconframes.endpoint import Fields


class TokenBalances(Table):
    """Token balances of an address. One row per address and token."""

    address = Text("Address that holds the tokens.", key=True, context="request.address")
    token = Hex("Contract of the token.", key=True, wire="address")
    symbol = Text("Symbol, as the contract states it: do not trust it.", nullable=True)
    balance = DecimalText("Number of tokens, as exact decimal text; to_tokens converts it.")
    decimals = DecimalPlaces("Decimal places of balance; the service rounds to 16.", of="balance")


class TokenPages(Pages):
    """Pages of tokens; the public service reads a limit of 0 as the largest one."""

    def public_fields(self, fields: Fields) -> Fields:
        """Return *fields* with a valid page."""
        is_zero = identifiers.parse_number(fields.get("limit", "")) == 0
        return super().public_fields({**fields, "limit": str(self.at_most)} if is_zero else fields)


TOKEN_BALANCES = Endpoint(
    "token_balances",
    route="GET /api/v1/execution/address/{address}/erc20tokens",
    table=TokenBalances,
    parameters=(
        AddressOrName(
            "address",
            wire="address",
            pattern=ADDRESS,
            what="an address of 40 hex digits",
            error="error invalid address",
            matches=TokenBalances.address.name,
            order=("token",),
        ),
    ),
    pagination=TokenPages(at_most=200, default=200),
)


@loader(TOKEN_BALANCES)
def load_token_balances(address: str | Iterable[str]) -> Values:
    """Load all token balances of an address, one row per token.

    200 tokens per request.

    Parameters
    ----------
    address
        An address of 40 hex digits, or a list or Series of them.

    Returns
    -------
    polars.DataFrame
        Sorted by ``address``, ``token``. ``balance`` is text, exact as the service sends it, in
        tokens; `to_tokens` converts it to numbers without loss. ``decimals`` is the number of its
        decimal places; the contract may have more, because the service rounds to 16. ``symbol``
        is set by the contract and cannot be trusted. An address without tokens has no rows, and is
        not reported as missing.

    Notes
    -----
    ``GET /api/v1/execution/address/{address}/erc20tokens``. Never final.
    """
    return {"address": address}
