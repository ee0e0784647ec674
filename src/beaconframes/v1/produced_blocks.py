"""Execution blocks by producer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.client import Values, loader
from beaconframes.endpoint import (
    ADDRESS,
    Batch,
    Endpoint,
    ExpectedRows,
    Finality,
    Pages,
    Parameter,
    RequestRefused,
    Role,
    identifiers,
)
from beaconframes.endpoint.parameter import permit_any_text
from beaconframes.endpoint.parameters_v1 import PUBKEY, describe_list
from beaconframes.v1._execution_blocks import ExecutionBlocks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint import ChainHead, Fields, JsonSchema, View

MAX_PATH_LENGTH = 7_500


@dataclass(frozen=True)
class Producers(Parameter):
    """Fee recipients and validators; never both in one request.

    The service applies the page offset to each kind separately, so a mixed list would lose rows.
    """

    arg: str
    _: KW_ONLY
    addresses_at_most: int = 20
    at_most: int = 100

    role = Role.SUBJECT

    def arguments(self) -> tuple[str, ...]:
        """Return the one argument."""
        return (self.arg,)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return batches of addresses, then batches of validators."""
        items = list(identifiers.iterate_items(values[self.arg], self.arg))
        addresses = list(dict.fromkeys(item.lower() for item in items if is_address(item)))
        validators = identifiers.normalize_validators(
            [item for item in items if not is_address(item)]
        )
        recipient, paid = (
            ExecutionBlocks.fee_recipient,
            ExecutionBlocks.relay_producer_fee_recipient,
        )
        proposer = ExecutionBlocks.proposer_index
        batches = []
        for batch in identifiers.split_into_batches(addresses, self.addresses_at_most, None):
            expected = ExpectedRows({recipient.name: batch, paid.name: batch}, required=False)
            batches.append(Batch({self.arg: ",".join(batch)}, (expected,)))
        for batch in identifiers.split_into_batches(validators, self.at_most, MAX_PATH_LENGTH):
            # Blocks contain the index of the proposer, not its key, so keys cannot be checked.
            has_indices = all(map(str.isdigit, batch))
            indices = [int(item) for item in batch if has_indices]
            expected = ExpectedRows({proposer.name: indices}, required=False)
            batches.append(Batch({self.arg: ",".join(batch)}, (expected,) if has_indices else ()))
        return batches

    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        about = "Fee recipients, or indices or public keys of validators."
        return {self.arg: describe_list(about, "[0-9]+", PUBKEY, ADDRESS)}

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the blocks of any of the producers."""
        items = fields[self.arg].split(",")
        addresses = [item.lower() for item in items if is_address(item)]
        if len(addresses) > self.addresses_at_most:
            raise RequestRefused(
                f"you are only allowed to query up to max {self.addresses_at_most} addresses"
            )
        indices = [index_of(item, view) for item in items if not is_address(item)]
        if len(items) > self.at_most or -1 in indices:
            raise RequestRefused(
                "invalid address, validator index or pubkey "
                f"or exceeded max of {self.at_most} params"
            )
        # To compare the texts of all blocks takes longer than all else.
        is_produced = pl.col(ExecutionBlocks.proposer_index.name).is_in(indices)
        if addresses:
            recipients = ExecutionBlocks.fee_recipient, ExecutionBlocks.relay_producer_fee_recipient
            is_produced |= pl.any_horizontal(pl.col(c.name).is_in(addresses) for c in recipients)
        return rows.filter(is_produced)


@dataclass(frozen=True)
class Direction(Parameter):
    """Sort order of blocks. Oldest first, so that new blocks do not shift pages."""

    role = Role.ORDER

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the direction."""
        return [Batch({"sort": "asc"})]

    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        schema = {"type": "string", "enum": ["asc", "desc"], "default": "desc"}
        return permit_any_text({"sort": schema})

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the blocks, newest first unless the request says otherwise."""
        newest_first = fields.get("sort") != "asc"
        return rows.sort(ExecutionBlocks.block_number.name, descending=newest_first)


def is_address(item: Any) -> bool:
    """Return whether *item* is an address of the execution layer."""
    return isinstance(item, str) and re.fullmatch(ADDRESS, item) is not None


def index_of(item: str, view: View) -> int:
    """Return the index of a validator; -1 if there is none."""
    if identifiers.is_pubkey(item):
        index = view.index_of(f"0x{item.lower().removeprefix('0x')}")
        return -1 if index is None else index
    number = identifiers.parse_number(item)
    return -1 if number is None else number


PRODUCED_BLOCKS = Endpoint(
    "produced_blocks",
    route="GET /api/v1/execution/{producers}/produced",
    table=ExecutionBlocks,
    parameters=(Producers("producers"), Direction()),
    pagination=Pages(at_most=100, default=10),
    finality=Finality.AT_FINALITY,
)


@loader(PRODUCED_BLOCKS)
def load_produced_blocks(producers: int | str | Iterable[int | str]) -> Values:
    """Load the execution blocks of producers, one row per block.

    20 addresses or 100 validators, and 100 blocks, per request.

    Parameters
    ----------
    producers
        Fee recipients (addresses of 40 hex digits), validator indices or public keys: one, or a
        list, range or Series of them, mixed, of any length.

    Returns
    -------
    polars.DataFrame
        The columns of `load_execution_blocks`, sorted by ``block_number``. A block belongs to the
        address that received its fees, and to the address that its builder paid through a relay. A
        producer without blocks has no rows, and is not reported as missing.

    Notes
    -----
    ``GET /api/v1/execution/{addressIndexOrPubkey}/produced``. Final once the epoch of the block is
    finalized.
    """
    return {"producers": producers}
