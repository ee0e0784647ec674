"""The rows that requests select from a dataset, by one query for all that one query can answer."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from beaconframes.answers.selectors import (
    choose,
    find_bounds,
    find_slots,
    match_numbers,
    select,
    select_sums,
)
from beaconframes.answers.selectors.v1 import find_recent_epochs
from beaconframes.answers.uncovered import require_covered
from beaconframes.answers.v2 import BY_EPOCH, HOURLY, RANGES, ROWS, STORED, SUMMARIES, WITHOUT_RANGE
from beaconframes.answers.view import SCANNED_TABLES
from beaconframes.endpoint import Envelope, ExpectedRows, RequestRefused, Role
from beaconframes.endpoint.identifiers import parse_number
from beaconframes.fetch.completeness import is_expected
from beaconframes.v1 import ENDPOINTS
from beaconframes.v1.attestations import ATTESTATIONS, RECENT_EPOCHS, Attestations
from beaconframes.v1.slot_attestations import SLOT_ATTESTATIONS
from beaconframes.v2.slot_attestation_duties import SLOT_ATTESTATION_DUTIES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from beaconframes.answers.selectors import Bounds
    from beaconframes.answers.view import DatasetView
    from beaconframes.derive.chain_tables import View
    from beaconframes.endpoint import Endpoint, Fields, Parameter

HOUR = 3600
"""Seconds between two updates of the endpoints in ``HOURLY``."""

STORED_TABLES = {endpoint.path: endpoint.table.table_name for endpoint in ENDPOINTS}
"""The table with the rows of each path of V1; some loads have a narrower table of the same rows."""


def find_stored_table(endpoint: Endpoint) -> str:
    """Return the table with the rows of a V1 endpoint."""
    return STORED_TABLES.get(endpoint.path, endpoint.table.table_name)


def select_rows(
    endpoint: Endpoint,
    requests: Sequence[Fields],
    view: DatasetView,
    joined: Mapping[Parameter, Sequence[Collection[int]]] | None = None,
) -> pl.LazyFrame:
    """Return the rows that *requests* select, in the order of an answer.

    The requests differ only in parameters that are *joined*, each with the numbers of all requests.
    """
    fields, joined = requests[0], joined or {}
    token = SCANNED_TABLES.set(set())
    try:
        is_v2 = endpoint.envelope is Envelope.V2
        bounds = None if is_v2 else find_bounds(endpoint.all_parameters, fields, view, joined)
        rows = scan_rows(endpoint, view, find_drawn_epochs(endpoint, fields, view), bounds)
        for parameter in endpoint.all_parameters:
            if (numbers := joined.get(parameter)) is not None:
                assert parameter.rows_column is not None
                name = parameter.rows_column.name
                selections = [ExpectedRows({name: part}) for part in numbers]
                is_selected = is_expected(endpoint.table.schema(), selections)
                rows = choose(parameter, rows.filter(is_selected))
            elif parameter.role is not Role.PAGE:
                rows = select(parameter, rows, fields, view)
        if not is_v2:
            return rows
        if endpoint.name in BY_EPOCH:
            slots = (find_slots(endpoint.all_parameters, request, view) for request in requests)
            epochs = {first // view.chain.slots_per_epoch for first, _ in filter(None, slots)}
            rows = rows.filter(match_numbers(pl.col("epoch"), epochs))
        if endpoint.name in SUMMARIES:
            rows = select_sums(endpoint, SUMMARIES[endpoint.name](rows), fields, view)
        tables = SCANNED_TABLES.get() or ()
    finally:
        SCANNED_TABLES.reset(token)
    is_computed = endpoint.name in SUMMARIES or not endpoint.parameters_of(Role.SUBJECT)
    if is_computed and endpoint.name not in STORED:
        # Rows that are not covered would count as zero.
        for request in requests:
            require_covered(endpoint, request, view, tables)
    return rows


def scan_rows(
    endpoint: Endpoint, view: DatasetView, drawn: range, bounds: Bounds | None = None
) -> pl.LazyFrame:
    """Return the rows of an *endpoint*, with those of the epochs that have to be *drawn*.

    Rows of V1 outside of *bounds* may be left out.
    """
    if endpoint.envelope is Envelope.V2:
        if drawn:
            view = view.with_old_duties(drawn.start)
        return ROWS[endpoint.name](view)
    table = find_stored_table(endpoint)
    view.table_cache.require(table)
    old = view.old_attestations if drawn else None
    if old is None:
        return view.table_cache.scan_files(table, bounds)
    draw = old.draw_duties if endpoint is ATTESTATIONS else old.draw
    frames = [draw_epoch(view, table, epoch, draw) for epoch in drawn]
    if endpoint is ATTESTATIONS:
        frames.append(view.table_cache.scan(table, Attestations.schema()))
    return pl.concat(frames)


def draw_epoch(
    view: DatasetView, table: str, epoch: int, draw: Callable[[int], pl.DataFrame]
) -> pl.LazyFrame:
    """Return the rows of an *epoch* of *table*, which are drawn once."""

    def compute() -> tuple[int, pl.DataFrame]:
        rows = draw(epoch)
        return int(rows.estimated_size()), rows

    drawn: pl.DataFrame = view.table_cache.get_or_compute(("drawn", table, epoch), compute)
    return drawn.lazy()


def find_drawn_epochs(endpoint: Endpoint, fields: Fields, view: DatasetView) -> range:
    """Return the epochs of a request whose attestations a simulated dataset does not store."""
    is_drawn = endpoint in (ATTESTATIONS, SLOT_ATTESTATIONS, SLOT_ATTESTATION_DUTIES)
    old = view.old_attestations if is_drawn else None
    if old is None:
        return range(0)
    # Invalid validators are refused before invalid epochs.
    with suppress(RequestRefused):
        if endpoint is ATTESTATIONS:
            epochs, stored = find_recent_epochs(RECENT_EPOCHS, fields, view), old.duty_epochs
            return range(max(epochs.start, stored.start), min(epochs.stop, stored.stop))
        if endpoint is SLOT_ATTESTATIONS:
            slot = parse_number(fields["slot"])
        else:
            slot = find_range(endpoint, fields, view)["slot"]["start"]
        epoch = -1 if slot is None else slot // view.chain.slots_per_epoch
        return range(epoch, epoch + 1) if epoch in old.epochs else range(0)
    return range(0)


def find_range(endpoint: Endpoint, fields: Fields, view: View) -> dict[str, Any]:
    """Return the range of the answer to *fields*, both ends included."""
    size = view.chain.slots_per_epoch
    slots = find_slots(endpoint.all_parameters, fields, view)
    first, last = slots or (view.head.slot, view.head.slot)
    if endpoint.name in RANGES:
        first, last = RANGES[endpoint.name](view, first, last)

    def second(slot: int) -> int:
        return int(view.chain.time_of("slot", slot).timestamp())

    return {
        "slot": {"start": first, "end": last},
        "epoch": {"start": first // size, "end": last // size},
        "timestamp": {"start": second(first), "end": second(last + 1) - 1},
    }


def build_envelope(endpoint: Endpoint, fields: Fields, view: View) -> dict[str, bytes]:
    """Return what an answer of V2 states beside its records, as raw JSON."""
    parts: dict[str, Any] = {}
    if endpoint.name not in WITHOUT_RANGE:
        parts["range"] = find_range(endpoint, fields, view)
    if endpoint.name in HOURLY:
        second = int(view.chain.time_of("slot", view.head.slot).timestamp())
        parts["last_updated"] = second // HOUR * HOUR
    return {name: msgspec.json.encode(part) for name, part in parts.items()}
