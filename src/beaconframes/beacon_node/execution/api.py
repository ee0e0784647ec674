"""The JSON-RPC of an execution node: blocks, receipts, logs, and what its client does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec

from beaconframes.beacon_node.client.clients import find_archive_hint
from beaconframes.beacon_node.execution.records import (
    Quantity,
    RpcBlock,
    RpcLog,
    RpcReceipt,
    to_int,
)
from beaconframes.errors import (
    BadRequest,
    BeaconframesError,
    IntegrityError,
    NotFound,
    NotServed,
    ProtocolError,
    ResponseError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.beacon_node.client.session import NodeSession

T = TypeVar("T")
Call: TypeAlias = "tuple[str, Sequence[Any]]"
MAX_BATCH: Final = 100
"""Calls of one batch with short answers; many providers allow no more."""
BLOCKS_PER_BATCH: Final = 4
"""Full blocks with receipts of one batch: about 10 MB, where Geth sends at most 25 MB."""


class ExecutionApi:
    """The JSON-RPC of one execution node: thread-safe, with connections that stay open.

    Batches are used where the server accepts them, otherwise single calls.
    """

    def __init__(self, session: NodeSession) -> None:
        """Send requests by *session*."""
        self.session = session
        self.has_batches = True
        """False once the server has refused a batch."""

    def __repr__(self) -> str:
        client = self.session.client_version
        return f"ExecutionApi({self.session.url!r}{f', client={client!r}' if client else ''})"

    def close(self) -> None:
        """Close all connections; a later request opens new ones."""
        self.session.close()

    def version(self) -> str:
        """Return the version of the client, such as ``Geth/v1.16.7-stable``, requested once."""
        if not self.session.client_version:
            try:
                version = str(self.call([("web3_clientVersion", [])])[0])
            except NotServed:  # only the methods of "eth" are turned on
                version = "the execution node"
            self.session.client_version = version
        return self.session.client_version

    def head_number(self) -> int:
        """Return the number of the newest block."""
        answer = self.call([("eth_blockNumber", [])])[0]
        return to_int(self.parse(answer, Quantity, "eth_blockNumber"))

    def call(self, calls: Sequence[Call]) -> list[Any]:
        """Return the results of *calls* in their order: a batch, or single calls if it is refused.

        NotFound means that the client has pruned the blocks of this time.
        """
        try:
            return self._call(calls)
        except NotFound as error:
            error.hint = self.history_hint()
            raise

    def read_blocks(self, numbers: Sequence[int]) -> list[tuple[RpcBlock, list[RpcReceipt]]]:
        """Return canonical blocks with full transactions, and their receipts.

        Raises
        ------
        IntegrityError
            A block or a receipt is missing; names block and client.
        """
        found = []
        for batch in split(numbers, BLOCKS_PER_BATCH):
            found += self._read_batch(batch)
        return found

    def read_logs(
        self, address: str, topic: str, first_block: int, last_block: int
    ) -> list[RpcLog]:
        """Return the events *topic* of the contract *address* in a range of blocks, inclusive."""
        chosen = {
            "address": address,
            "topics": [topic],
            "fromBlock": hex(first_block),
            "toBlock": hex(last_block),
        }
        answer = self.call([("eth_getLogs", [chosen])])[0]
        about = f"eth_getLogs of blocks {first_block} to {last_block}"
        return self.parse(answer, list[RpcLog], about)

    def read_each(self, calls: Sequence[Call], kind: Any) -> list[Any]:
        """Return the results of *calls* with short answers as *kind*, None for null."""
        results: list[Any] = []
        for batch in split(calls, MAX_BATCH):
            for (method, parameters), answer in zip(batch, self.call(batch), strict=True):
                about = " ".join(map(str, (method, *parameters)))
                results.append(None if answer is None else self.parse(answer, kind, about))
        return results

    def describe(self) -> str:
        """Return name and version of the client for the texts of errors."""
        try:
            return "/".join(self.version().split("/")[:2])
        except BeaconframesError:
            return "the execution node"

    def history_hint(self) -> str:
        """Return what makes the client answer for old blocks."""
        hint = find_archive_hint(self.describe(), "use one with full history")
        return f"The node may have pruned the blocks of this time: {hint}"

    def _call(self, calls: Sequence[Call]) -> list[Any]:
        if self.has_batches and len(calls) > 1:
            try:
                return self.session.call(calls)
            except (BadRequest, NotServed, ProtocolError) as error:
                if isinstance(error, NotServed) and error.endpoint in {name for name, _ in calls}:
                    raise
            results = [self.session.call([call])[0] for call in calls]
            self.has_batches = False
            return results
        return [self.session.call([call])[0] for call in calls]

    def _read_batch(self, numbers: Sequence[int]) -> list[tuple[RpcBlock, list[RpcReceipt]]]:
        calls: list[Call] = [("eth_getBlockByNumber", [hex(number), True]) for number in numbers]
        calls += [("eth_getBlockReceipts", [hex(number)]) for number in numbers]
        answers = self.call(calls)
        blocks = list(map(self._parse_block, numbers, answers))
        return [
            (block, self._parse_receipts(block, answer))
            for block, answer in zip(blocks, answers[len(numbers) :], strict=True)
        ]

    def _parse_block(self, number: int, answer: Any) -> RpcBlock:
        if answer is None:
            raise IntegrityError(
                f"{self.describe()} does not have execution block {number}",
                hint=f"The node may still be synchronizing. {self.history_hint()}",
                endpoint="eth_getBlockByNumber",
            )
        return self.parse(answer, RpcBlock, f"eth_getBlockByNumber {number}")

    def _parse_receipts(self, block: RpcBlock, answer: Any) -> list[RpcReceipt]:
        number = to_int(block.number)
        found = answer if isinstance(answer, list) else []
        count = sum(each is not None for each in found)
        if answer is None or count < len(block.transactions):
            raise IntegrityError(
                f"{self.describe()} has {count} of {len(block.transactions)} receipts of "
                f"execution block {number}",
                hint=self.history_hint(),
                endpoint="eth_getBlockReceipts",
            )
        about = f"the receipts of execution block {number}"
        return self.parse(answer, list[RpcReceipt], about)

    def parse(self, answer: Any, kind: type[T], about: str) -> T:
        """Return *answer* as *kind*; ResponseError names the client, *about* and the field."""
        try:
            return msgspec.convert(answer, kind)
        except msgspec.ValidationError as error:
            raise ResponseError(
                f"the answer of {self.describe()} for {about} is invalid: {error}",
                hint="Check that the address is that of an execution node",
            ) from None


def split(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """Return *items* in batches of at most *size*."""
    return [items[start : start + size] for start in range(0, len(items), size)]
