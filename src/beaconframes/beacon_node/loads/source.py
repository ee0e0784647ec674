"""A node as the source of loads: what a load needs is indexed, and answered from the index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.active_periods import REASON
from beaconframes.answers.dataset_source import DatasetSource
from beaconframes.beacon_node.amounts.states import VERIFIED_LATER
from beaconframes.beacon_node.client.slot_blocks import MISSED
from beaconframes.beacon_node.index.verdicts import build_optimistic_warning
from beaconframes.beacon_node.tables import REWARD_TABLES
from beaconframes.beacon_node.tables.balance_moves import UnexplainedChanges
from beaconframes.cache.pubkey_index import KEYS_PATH
from beaconframes.endpoint import Envelope
from beaconframes.errors import MissingRows, NotServed, UnreconciledRows
from beaconframes.fetch.head import encode_stated_head
from beaconframes.fetch.source import plan_calls
from beaconframes.intervals import clip_intervals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from beaconframes.beacon_node.loads.growing_index import GrowingIndex
    from beaconframes.beacon_node.loads.needs import Needs
    from beaconframes.endpoint import Call, ChainHead, Endpoint, Head, Request
    from beaconframes.fetch.served_range import ServedRange
    from beaconframes.fetch.source import FetchedRows, RequestEstimate


class NodeSource(DatasetSource):
    """A node, by way of the dataset of its index."""

    is_node = True

    def __init__(self, index: GrowingIndex) -> None:
        """Answer from *index*, after it has what a load needs."""
        super().__init__(index.views)
        self._index = index

    @property
    def known_head(self) -> Head:
        """Return the head that the node has stated last."""
        return self._index.head

    def estimate(self, endpoint: Endpoint, calls: Sequence[Call]) -> RequestEstimate:
        """Return what *calls* of *endpoint* need of the node, without a request."""
        return self._index.estimate(endpoint, self._index.find_needs(endpoint, calls))

    def fetch(self, request: Request) -> bytes:
        """Return the present head, or the validators with some public keys."""
        if request.envelope is Envelope.PNG:
            raise NotServed(
                "load_chart returns a picture that the explorer draws, and a node has none",
                hint="bf.plot draws charts from frames",
                endpoint=request.endpoint,
            )
        self._index.refresh()
        if request.path == KEYS_PATH:
            return super().fetch(request)
        return encode_stated_head(request, self._index.head, self._index.chain_index.chain)

    def fetch_rows(
        self,
        endpoint: Endpoint,
        arguments: Sequence[Mapping[str, Any]],
        chain_head: ChainHead,
        served: ServedRange,
    ) -> Iterator[FetchedRows]:
        """Yield the rows of *endpoint*; what the index does not have is requested first."""
        with self._index.holding_head():
            calls = plan_calls(endpoint, arguments, chain_head)
            served.check_not_future(calls)
            needs = self._index.find_needs(endpoint, calls)
            needs = self._index.prepare(endpoint, needs)
            doubts = [
                *find_unreconciled(self._index, needs),
                *find_optimistic(self._index, needs),
                *find_unknown_proposers(self._index, calls, needs),
            ]
            for part in super().fetch_rows(endpoint, arguments, chain_head, served):
                yield part._replace(warnings=[*part.warnings, *doubts])
                doubts = []


def find_unreconciled(index: GrowingIndex, needs: Needs) -> list[Warning]:
    """Return a warning if balances do not confirm income that a load needs; else nothing."""
    if not needs.tables & {*REWARD_TABLES}:
        return []
    # They contain income of epochs before.
    changes = index.views.current().scan(UnexplainedChanges.table_name, UnexplainedChanges.schema())
    if needs.epochs is not None:
        later = {each + after for each in needs.epochs for after in range(VERIFIED_LATER + 1)}
        changes = changes.filter(pl.col("epoch").is_in(sorted(later)))
    if needs.validators is not None:
        changes = changes.filter(pl.col("validator_index").is_in(sorted(needs.validators)))
    found = changes.sort("epoch", "validator_index").collect()
    if found.is_empty():
        return []
    first = found.row(0, named=True)
    more = f", and {found.height - 1:,} more" if found.height > 1 else ""
    warning = UnreconciledRows(
        f"balances do not confirm these rows: {first['unexplained_gwei']:+,} gwei of validator "
        f"{first['validator_index']} in epoch {first['epoch']} is unexplained{more}",
        hint="Compare with another node; node.coverage() lists the epochs, and strict=True "
        "makes this an error",
    )
    warning.changes = found
    return [warning]


def find_optimistic(index: GrowingIndex, needs: Needs) -> list[Warning]:
    """Return a warning if the execution node has not verified what a load needs."""
    if not needs.indexed:
        is_verified = index.node.api.optimistic_slot is None
        return [] if is_verified else [build_optimistic_warning(())]
    requested = needs.epochs or (0, index.head.epoch)
    epochs = clip_intervals(index.chain_index.optimistic_epochs, min(requested), max(requested))
    return [build_optimistic_warning(epochs)] if epochs else []


def find_unknown_proposers(
    index: GrowingIndex, calls: Sequence[Call], needs: Needs
) -> list[Warning]:
    """Return a warning if missed proposals are missing from *calls* for validators."""
    is_of_proposer = any("proposer_index" in e.values for call in calls for e in call.expected)
    is_of_validators = is_of_proposer or needs.validators is not None
    if not is_of_validators or "blocks" not in index.find_starts(needs):
        return []
    is_unknown = (pl.col("status") == MISSED) & pl.col("proposer_index").is_null()
    if needs.epochs is not None:
        is_unknown &= pl.col("epoch").is_in(sorted(needs.epochs))
    blocks = index.views.current().scan("blocks").filter(is_unknown)
    slots = blocks.select("slot").sort("slot").collect()
    if slots.is_empty():
        return []
    warning = MissingRows(
        f"missed proposals are incomplete: the node does not say who had to propose in "
        f"{slots.height:,} slots without a block, from slot {slots['slot'][0]} to "
        f"{slots['slot'][-1]}: it has no proposer duties of that time",
        hint=index.node.capabilities.archive_hint,
    )
    warning.missing = slots.with_columns(pl.lit("unknown proposer").alias(REASON))
    return [warning]
