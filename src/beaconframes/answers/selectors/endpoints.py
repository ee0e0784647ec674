"""The rows that parameters of single endpoints of V1 select."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.selectors.base import RowSelector
from beaconframes.answers.selectors.set_members import list_credentials
from beaconframes.answers.selectors.v1 import (
    find_address,
    find_number,
    find_validators,
    parse_field,
    parse_text,
    parse_validators,
    sort_by_order,
    sort_descending,
)
from beaconframes.derive.proposal_luck import compute_luck
from beaconframes.endpoint import (
    ADDRESS,
    UNRESOLVED,
    RequestRefused,
    Texts,
)
from beaconframes.endpoint.identifiers import is_pubkey, parse_number
from beaconframes.v1._execution_blocks import ExecutionBlocks
from beaconframes.v1._execution_requests import SourceOrTarget
from beaconframes.v1._wall_parameters import Region, Switch
from beaconframes.v1.address_balances import MAX_TOKENS, BalanceAddresses, TokenFilter
from beaconframes.v1.attestations import Slim
from beaconframes.v1.bls_changes import ChangedValidators
from beaconframes.v1.deposits import DepositValidators
from beaconframes.v1.execution_blocks import BLOCK_NUMBER_LIMIT, BlockNumbers
from beaconframes.v1.graffiti_wall import Summary
from beaconframes.v1.leaderboard import TopRows
from beaconframes.v1.names import NameLookup
from beaconframes.v1.produced_blocks import Direction, Producers, is_address
from beaconframes.v1.proposal_luck import ProposalLuck, SingleSet
from beaconframes.v1.slots import HAS_BLOCK, ROOT, SlotsOrRoots
from beaconframes.v1.withdrawal_credentials import Credentials

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View
    from beaconframes.endpoint import Fields, Parameter


def find_changed(parameter: ChangedValidators, fields: Fields, view: View) -> set[int]:
    """Return the validators; raise RequestRefused if any is unknown."""
    _, keys = parse_validators(parameter, fields)
    if any(view.indices.get(key) is None for key in keys):
        raise RequestRefused(f"invalid validator argument, pubkey(s) {UNRESOLVED}")
    return find_validators(parameter, fields, view)


def match_deposits(parameter: DepositValidators, fields: Fields, view: View) -> pl.Expr:
    """Match the deposits of the validators, also of public keys without an index."""
    indices, keys = parse_validators(parameter, fields)
    resolved = (view.pubkeys.get(index) for index in indices)
    pubkeys = pl.Series([*keys, *(key for key in resolved if key is not None)], dtype=pl.String)
    return pl.col(parameter.column.name).is_in(pubkeys.implode())


def match_consolidations(parameter: SourceOrTarget, fields: Fields, view: View) -> pl.Expr:
    """Match the consolidations from or to the validators."""
    indices = find_validators(parameter, fields, view)
    return pl.any_horizontal(pl.col("source_index", "target_index").is_in(indices))


def compute_rows(
    parameter: SingleSet, _rows: pl.LazyFrame, fields: Fields, view: View
) -> pl.LazyFrame:
    """Return the luck of the set, computed from validators and blocks."""
    if not fields.get(parameter.arg):
        raise RequestRefused("no validators provided")
    try:
        indices, keys = parse_validators(parameter, fields)
    except RequestRefused:
        raise RequestRefused("could not parse validators") from None
    resolved = (view.indices.get(key) for key in keys)
    members = {*indices, *(index for index in resolved if index is not None)}
    if not members:
        raise RequestRefused("could not resolve pubkeys to indices")
    row = {"validators": fields[parameter.arg]} | compute_luck(members, view)
    return pl.LazyFrame([row], schema=ProposalLuck.schema())


def find_block_slot(parameter: SlotsOrRoots, fields: Fields, view: View) -> tuple[int] | None:
    """Return the one slot; None for a root or the latest block."""
    text = fields[parameter.wire]
    is_slot = text != "head" and not ROOT.fullmatch(text)
    return find_number(parameter, fields, view) if is_slot else None


def match_block(parameter: SlotsOrRoots, fields: Fields, _view: View) -> pl.Expr:
    """Match the block with a root, or the latest one."""
    text = fields[parameter.wire]
    if text == "head":
        latest = pl.col("slot").filter(pl.col("status") == "proposed").max()
        return (pl.col("status") == "proposed") & (pl.col("slot") == latest)
    return pl.col("block_root") == f"0x{text.lower().removeprefix('0x')}"


def choose_canonical(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return one block of each slot: the canonical one if there are two."""
    is_orphaned = pl.col("status") != "proposed"
    blocks = rows.filter(HAS_BLOCK).sort("slot", is_orphaned, "block_root")
    return blocks.unique("slot", keep="first", maintain_order=True)


def add_nameless(
    parameter: NameLookup, rows: pl.LazyFrame, fields: Fields, _view: View
) -> pl.LazyFrame:
    """Return the row of a name or an address; an address without a name has one, too."""
    requested = parse_text(parameter, fields)
    stored = rows.filter(requested=requested)
    if not requested.startswith("0x"):
        return stored
    nameless = pl.LazyFrame({"requested": requested, "address": requested, "domain": ""})
    return pl.concat([stored, nameless]).head(1)


def match_credentials(parameter: Credentials, fields: Fields, view: View) -> pl.Expr:
    """Match the rows of credentials, or of both kinds of credentials that pay to an address."""
    credentials = list_credentials(find_address(parameter, fields, view))
    return pl.col(parameter.matches).is_in(credentials)


def add_unknown(
    parameter: BalanceAddresses, rows: pl.LazyFrame, fields: Fields, _view: View
) -> pl.LazyFrame:
    """Return the ether and the first tokens of one address, which may be unknown."""
    address = parse_text(parameter, fields)
    account = rows.filter(address=address).sort("token").head(1 + MAX_TOKENS)
    if not account.head(1).collect().is_empty():
        return account
    # The mark is no text, so no query can set it.
    is_public = fields.get("is_public") is True
    unknown = pl.LazyFrame({"address": "0x" if is_public else address, "balance_wei": 0})
    ether = unknown.cast({"balance_wei": pl.Decimal(28, 0)})
    return pl.concat([account, ether], how="diagonal")


def match_token(_parameter: TokenFilter, fields: Fields, _view: View) -> pl.Expr | None:
    """Match the ether and the one token."""
    if "token" not in fields:
        return None
    contract = Texts.canonical(fields["token"])
    if not re.fullmatch(ADDRESS, contract):
        raise RequestRefused("error invalid token query param")
    return pl.col("token").is_null() | (pl.col("token") == contract)


def parse_producers(
    parameter: Producers, fields: Fields, view: View
) -> tuple[list[int], list[str]]:
    """Return the indices and the addresses of the producers."""
    items = fields[parameter.arg].split(",")
    addresses = [item.lower() for item in items if is_address(item)]
    if len(addresses) > parameter.addresses_at_most:
        raise RequestRefused(
            f"you are only allowed to query up to max {parameter.addresses_at_most} addresses"
        )
    indices = [
        view.indices.get(f"0x{item.lower().removeprefix('0x')}")
        if is_pubkey(item)
        else parse_number(item)
        for item in items
        if not is_address(item)
    ]
    if len(items) > parameter.at_most or None in indices:
        raise RequestRefused(
            "invalid address, validator index or pubkey "
            f"or exceeded max of {parameter.at_most} params"
        )
    return [index for index in indices if index is not None], addresses


def find_producers(parameter: Producers, fields: Fields, view: View) -> list[int] | None:
    """Return the indices of the producers, or None: only the texts of blocks have addresses."""
    indices, addresses = parse_producers(parameter, fields, view)
    return None if addresses else indices


def match_produced(parameter: Producers, fields: Fields, view: View) -> pl.Expr:
    """Match the blocks of any of the producers."""
    indices, addresses = parse_producers(parameter, fields, view)
    recipients = ExecutionBlocks.fee_recipient, ExecutionBlocks.relay_producer_fee_recipient
    return pl.any_horizontal(
        pl.col(ExecutionBlocks.proposer_index.name).is_in(indices),
        *(pl.col(column.name).is_in(addresses) for column in recipients),
    )


def find_block_numbers(parameter: BlockNumbers, fields: Fields, _view: View) -> list[int]:
    """Return the requested numbers, or raise RequestRefused."""
    items = fields[parameter.arg].split(",")
    if len(items) > parameter.at_most:
        raise RequestRefused(f"only a maximum of {parameter.at_most} query parameters are allowed")
    numbers = [
        n for item in items if (n := parse_number(item)) is not None and n < BLOCK_NUMBER_LIMIT
    ]
    if len(numbers) < len(items):
        raise RequestRefused("invalid block number")
    return numbers


def match_region(parameter: Region, fields: Fields, _view: View) -> pl.Expr:
    """Match the pixels inside; a coordinate beyond the wall becomes the last one."""
    last = parameter.size - 1
    left, top, right, bottom = (
        min(parse_field(fields, name, default, 0, None, f"invalid {name} provided"), last)
        for name, default in zip(parameter.names, (0, 0, last, last), strict=True)
    )
    if left > right or top > bottom:
        raise RequestRefused("invalid area provided by the coordinates")
    return parameter.inside(left, top, right, bottom)


def select_switched(
    parameter: Switch, rows: pl.LazyFrame, fields: Fields, _view: View
) -> pl.LazyFrame:
    """Return the selected rows when the flag is true."""
    text = fields.get(parameter.wire, str(parameter.default)).lower()
    if text not in ("true", "false", "t", "f", "1", "0"):
        raise RequestRefused(f"invalid value for {parameter.wire} provided")
    return parameter.keep(rows) if text in ("true", "t", "1") else rows


def sort_pixels(_parameter: Summary, rows: pl.LazyFrame, _fields: Fields) -> pl.LazyFrame:
    """Return the pixels column by column, the latest paint of each first."""
    # One number sorts twice as fast as three columns.
    pixel = pl.col("x") * 1_000 + pl.col("y")
    return rows.sort(pixel * 2**40 - pl.col("slot"))


def sort_blocks(_parameter: Direction, rows: pl.LazyFrame, fields: Fields) -> pl.LazyFrame:
    """Return the blocks, newest first unless the request says otherwise."""
    newest_first = fields.get("sort") != "asc"
    return rows.sort(ExecutionBlocks.block_number.name, descending=newest_first)


ENDPOINT_SELECTORS: dict[type[Parameter], RowSelector] = {
    ChangedValidators: RowSelector(
        find_changed, sort=lambda _, rows, __: rows.sort("slot", descending=True)
    ),
    DepositValidators: RowSelector(match=match_deposits),
    SourceOrTarget: RowSelector(match=match_consolidations),
    SingleSet: RowSelector(select=compute_rows),
    SlotsOrRoots: RowSelector(find_block_slot, match_block, choose=choose_canonical),
    NameLookup: RowSelector(select=add_nameless),
    Credentials: RowSelector(match=match_credentials, sort=sort_by_order),
    BalanceAddresses: RowSelector(select=add_unknown),
    TokenFilter: RowSelector(match=match_token),
    Producers: RowSelector(find_producers, match_produced),
    Direction: RowSelector(sort=sort_blocks),
    BlockNumbers: RowSelector(find_block_numbers, sort=sort_descending),
    Slim: RowSelector(),
    Region: RowSelector(match=match_region),
    Switch: RowSelector(select=select_switched),
    Summary: RowSelector(select=select_switched, sort=sort_pixels),
    TopRows: RowSelector(
        select=lambda p, rows, *_: rows.sort("rank_7d", "validator_index").head(p.length)
    ),
}
"""The selector of each type of parameter."""
