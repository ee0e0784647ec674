"""Execution blocks by number."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import (
    Batch,
    ColumnParameter,
    Endpoint,
    ExpectedRows,
    Finality,
    NamedParameter,
    Role,
)
from beaconframes.endpoint.identifiers import parse_numbers
from beaconframes.endpoint.parameters_v1 import describe_list
from beaconframes.v1._execution_blocks import ExecutionBlocks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint import ChainHead, JsonSchema
    from beaconframes.schema import Column


BLOCK_NUMBER_LIMIT = 10**18


@dataclass(frozen=True)
class BlockNumbers(NamedParameter, ColumnParameter):
    """Numbers of execution blocks, up to ``at_most`` per request."""

    arg: str
    column: Column
    _: KW_ONLY
    at_most: int = 100

    role = Role.UNITS

    def batch_limit(self, chain_head: ChainHead) -> int:
        """Return how many blocks one request may name."""
        return self.at_most

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the numbers, each once, ``at_most`` in a batch."""
        blocks = parse_numbers(values[self.arg], "execution block", ())
        batches = []
        for start in range(0, len(blocks), self.at_most):
            batch = blocks[start : start + self.at_most]
            expected = (ExpectedRows({self.column.name: batch}),)
            batches.append(Batch({self.arg: ",".join(map(str, batch))}, expected))
        return batches

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        about = f"Numbers of execution blocks: at most {self.at_most}."
        return {self.arg: describe_list(about, "[0-9]+")}


EXECUTION_BLOCKS = Endpoint(
    "execution_blocks",
    route="GET /api/v1/execution/block/{blocks}",
    table=ExecutionBlocks,
    parameters=(BlockNumbers("blocks", ExecutionBlocks.block_number),),
    finality=Finality.AT_FINALITY,
    is_contiguous=True,
)


@loader(EXECUTION_BLOCKS, missing="blocks that do not exist")
def load_execution_blocks(blocks: Subjects) -> Values:
    """Load execution blocks by number, one row per block.

    100 blocks per request.

    Parameters
    ----------
    blocks
        Numbers of execution blocks (not slots): one, or a list, range or Series of them, of any
        length. ``exec_block_number`` of `load_epoch_slots` is such a number.

    Returns
    -------
    polars.DataFrame
        Sorted by ``block_number``. Rewards and fees in wei, exact. ``slot``, ``epoch``,
        ``proposer_index`` and ``finalized`` are null before the merge. The ``relay_`` columns are
        null for a block without a relay.

    Notes
    -----
    ``GET /api/v1/execution/block/{blockNumber}``. Final once its epoch is finalized.
    """
    return {"blocks": blocks}
