"""Execution blocks by producer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from beaconframes.client import Values, loader
from beaconframes.endpoint import (
    Batch,
    Endpoint,
    ExpectedRows,
    Finality,
    NamedParameter,
    Pages,
    Parameter,
    Role,
    identifiers,
)
from beaconframes.endpoint.parameter import permit_any_text
from beaconframes.endpoint.parameters_v1 import PUBKEY, describe_list
from beaconframes.v1._execution_blocks import ExecutionBlocks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint import ChainHead, JsonSchema

MAX_PATH_LENGTH = 7_500


@dataclass(frozen=True)
class Producers(NamedParameter):
    """Fee recipients and validators; never both in one request.

    The service applies the page offset to each kind separately, so a mixed list would lose rows.
    """

    arg: str
    _: KW_ONLY
    addresses_at_most: int = 20
    at_most: int = 100

    role = Role.SUBJECT
    rows_column = ExecutionBlocks.proposer_index  # of blocks selected by validator

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return batches of addresses, then batches of validators."""
        items = list(identifiers.iterate_items(values[self.arg], self.arg))
        addresses = list(
            dict.fromkeys(
                f"0x{item.lower().removeprefix('0x')}" for item in items if is_address(item)
            )
        )
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

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        about = "Fee recipients, or indices or public keys of validators."
        address = identifiers.ADDRESS_PATTERN.pattern
        return {self.arg: describe_list(about, "[0-9]+", PUBKEY, address)}


@dataclass(frozen=True)
class Direction(Parameter):
    """Sort order of blocks. Oldest first, so that new blocks do not shift pages."""

    role = Role.ORDER

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the direction."""
        return [Batch({"sort": "asc"})]

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        schema = {"type": "string", "enum": ["asc", "desc"], "default": "desc"}
        return permit_any_text({"sort": schema})


def is_address(item: Any) -> bool:
    """Return whether *item* is an address of the execution layer."""
    return isinstance(item, str) and identifiers.ADDRESS_PATTERN.fullmatch(item) is not None


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
