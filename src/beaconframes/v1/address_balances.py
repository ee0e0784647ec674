"""Balances of addresses: ether and tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from beaconframes.client import Values, loader
from beaconframes.endpoint import (
    ADDRESS,
    Batch,
    Endpoint,
    Parameter,
    Role,
    Shape,
    Texts,
)
from beaconframes.errors import UsageError
from beaconframes.schema import (
    DecimalPlaces,
    DecimalText,
    Ether,
    Hex,
    Json,
    Table,
    Text,
)
from beaconframes.schema.encode import write_json
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from beaconframes.calendar import Chain
    from beaconframes.endpoint import ChainHead, Fields
    from beaconframes.schema import EnvelopeContext

MAX_TOKENS = 200


class Account(Table):
    """An address in the response. One row per address."""

    address = Hex("Address; null if the service does not know it.", key=True, none=("0x",))
    balance_wei = Ether("Ether of the address.", wire="ether")
    tokens = Json("Tokens of the address.", nullable=True)


class Holding(Table):
    """A token of an address in the response. One row per token."""

    token = Hex("Contract of the token.", key=True, wire="address")
    symbol = Text("Symbol, as the contract states it.", nullable=True)
    balance = DecimalText("Number of tokens.")
    decimals = DecimalPlaces("Decimal places of balance.", of="balance")


class AddressBalances(Table):
    """Balances of addresses. One row per address for its ether, and one per token."""

    address = Text("Address.", key=True, context="request.address")
    token = Hex("Contract of the token; null for ether.", key=True, wire="tokens[].address")
    symbol = Text(
        "Symbol, as the contract states it: do not trust it. Null for ether.",
        wire="tokens[].symbol",
    )
    balance_wei = Ether("Ether of the address; null for tokens.", wire="ether", minimum=0)
    balance = DecimalText(
        "Number of tokens, as exact decimal text; null for ether. to_tokens converts it.",
        wire="tokens[].balance",
    )
    decimals = DecimalPlaces("Decimal places of balance; null for ether.", of="balance")

    @classmethod
    def decode(
        cls,
        pages: Iterable[bytes],
        chain: Chain,
        contexts: Sequence[EnvelopeContext] = (),
    ) -> pl.DataFrame:
        """Return the rows of all *pages*: the ether of each address, then its tokens."""
        frames = [cls.empty()]
        requested = [context.fields["address"] for context in contexts]
        for number, account in enumerate(Account.decode(pages, chain).iter_rows(named=True)):
            tokens = Holding.decode([(account["tokens"] or "[]").encode()], chain)
            ether = pl.DataFrame(
                {"balance_wei": [account["balance_wei"]]}, schema_overrides=cls.schema()
            )
            rows = pl.concat([ether, tokens], how="diagonal")
            # The public service does not return an unknown address.
            own = account["address"] or (requested[number] if requested else None)
            address = pl.lit(own, pl.String).alias("address")
            frames.append(rows.with_columns(address).select(cls.schema().names()))
        return pl.concat(frames)

    @classmethod
    def encode_records(
        cls,
        frame: pl.DataFrame,
        chain: Chain,  # noqa: ARG003 - every table's
        *,
        without: Collection[str] = (),  # noqa: ARG003
        public: bool = False,
    ) -> list[bytes]:
        """Return the JSON text of an address; the public service writes null instead of []."""
        ether = frame.filter(pl.col("token").is_null())
        token = pl.struct("balance", "symbol", address="token")
        tokens = frame.filter(pl.col("token").is_not_null()).select(token).to_series()
        listed = None if public and tokens.is_empty() else tokens
        records = ether.select("address", ether=cls.balance_wei.encode()).with_columns(
            pl.Series("tokens", [listed] * ether.height, dtype=pl.List(tokens.dtype))
        )
        return write_json(records, pl.struct(pl.all()).struct.json_encode())

    @classmethod
    def arrange(cls, frame: pl.DataFrame, first: str = "") -> pl.DataFrame:
        """Return *frame* sorted by address, with ether first."""
        return super().arrange(frame).sort(cls.key(first), nulls_last=False)


@dataclass(frozen=True)
class BalanceAddresses(Texts):
    """Addresses; the public service does not return an unknown address itself."""

    def public_fields(self, fields: Fields) -> Fields:
        """Return *fields*, marked as those of the public service."""
        return {**fields, "is_public": True}


@dataclass(frozen=True)
class TokenFilter(Parameter):
    """The contract of the only token to return."""

    role = Role.FILTER
    args = ("token",)
    field_schemas: ClassVar = {"token": {"type": "string", "pattern": "^(0[xX])?[0-9a-fA-F]{40}$"}}

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the contract, or nothing for all tokens."""
        token = values["token"]
        if token is None:
            return [Batch()]
        contract = Texts.canonical(token) if isinstance(token, str) else ""
        if not re.fullmatch(ADDRESS, contract):
            raise UsageError(
                f"token={shorten(token)} is not an address of 40 hex digits",
                hint="Pass the address of the token's contract",
            )
        return [Batch({"token": contract})]


ADDRESS_BALANCES = Endpoint(
    "address_balances",
    route="GET /api/v1/execution/address/{address}",
    table=AddressBalances,
    parameters=(
        BalanceAddresses(
            "addresses",
            wire="address",
            pattern=ADDRESS,
            what="an address of 40 hex digits",
            column=AddressBalances.address,
            error="error invalid address",
        ),
        TokenFilter(),
    ),
    shape=Shape.OBJECT,
)


@loader(ADDRESS_BALANCES, missing="addresses without a response")
def load_address_balances(addresses: str | Iterable[str], token: str | None = None) -> Values:
    """Load the balances of addresses, one row per address for its ether and one per token.

    One request per address. At most 200 tokens of each address; `load_token_balances` loads all.

    Parameters
    ----------
    addresses
        Addresses of 40 hex digits: one, or a list or Series of them.
    token
        Contract of the only token to load beside the ether. Default: all tokens.

    Returns
    -------
    polars.DataFrame
        Sorted by ``address``, ``token``. Ether is first: its ``token`` is null. ``balance_wei``
        is the ether in wei. ``balance`` is the number of tokens as text, exact as the service sends
        it, with ``decimals`` decimal places; `to_tokens` converts it to numbers without loss.

    Notes
    -----
    ``GET /api/v1/execution/address/{address}``. Never final.
    """
    return {"addresses": addresses, "token": token}
