"""A dataset on disk as the source of a load: rows without a server, requests or JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
import polars as pl
from starlette.routing import compile_path

from beaconframes.answers.uncovered import find_uncovered
from beaconframes.endpoint import Shape
from beaconframes.endpoint.chain_metadata import STATED_HEADERS
from beaconframes.endpoint.uncovered import DATASET_HEADER
from beaconframes.fetch.completeness import is_expected
from beaconframes.fetch.served_range import requested_units
from beaconframes.fetch.source import ApiSource, FetchedRows, RequestEstimate
from beaconframes.http.response import HttpResponse
from beaconframes.http.session import Session
from beaconframes.progress import count_rows
from beaconframes.server.service import build_error
from beaconframes.server.v2 import find_endpoints
from beaconframes.v1 import ENDPOINTS
from beaconframes.v1._execution_requests import REQUEST_LISTS
from beaconframes.v1.attestations import ATTESTATIONS
from beaconframes.v1.chart import CHART_PATH

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from starlette.responses import Response

    from beaconframes.answers.view import DatasetView
    from beaconframes.endpoint import Call, ChainHead, Endpoint, ExpectedRows, Request
    from beaconframes.fetch.served_range import ServedRange
    from beaconframes.http.response import ResponsePage
    from beaconframes.http.session import Deadline
    from beaconframes.http.transport import Timeouts
    from beaconframes.server.service import Service

ADDRESS = "http://127.0.0.1"
"""The address of requests that are answered in this process; no connection is opened."""


class ServiceSession(Session):
    """A session whose requests a service in this process answers."""

    def __init__(self, service: Service) -> None:
        """Let *service* answer."""
        super().__init__(ADDRESS)
        self.stated_headers.update(service.headers)
        self._service = service
        # Fixed paths first: the leaderboard's path also matches the path of a validator.
        lists = sorted((*ENDPOINTS, *REQUEST_LISTS), key=lambda endpoint: endpoint.path.count("{"))
        self._routes = [(compile_path(endpoint.path)[0], endpoint) for endpoint in lists]
        self._posts = {e.post.path: (e, e.post) for e in lists if e.post is not None}
        self._routes_v2 = {endpoint.path: endpoint for endpoint in find_endpoints()}
        self._chart_route = compile_path(CHART_PATH)[0]

    def send(self, request: Request, deadline: Deadline, timeouts: Timeouts) -> ResponsePage:  # noqa: ARG002 - of a remote service
        """Return the page that *request* selects."""
        deadline.seconds_left()
        with self._lock:
            self.request_count += 1
        answer = self._answer(request)
        headers = dict(answer.headers)
        self.stated_headers |= {name: headers[name] for name in STATED_HEADERS if name in headers}
        return self._parse(HttpResponse(answer.status_code, headers, bytes(answer.body)), request)

    def _answer(self, request: Request) -> Response:
        """Return the answer of the service."""
        service, path = self._service, request.path
        if (endpoint := self._routes_v2.get(path)) is not None:
            return service.answer_v2(endpoint, request.body or b"", "premium")
        if request.method == "POST" and path in self._posts:
            endpoint, post = self._posts[path]
            text = msgspec.json.decode(request.body or b"{}")[post.field]
            return service.answer(endpoint, {post.arg: text}, "premium")
        if (chart := self._chart_route.match(path)) is not None:
            return service.answer_chart(unquote(chart["chart"]))
        for pattern, endpoint in self._routes:
            if (found := pattern.match(path)) is not None:
                in_path = {name: unquote(text) for name, text in found.groupdict().items()}
                return service.answer(endpoint, dict(request.query) | in_path, "premium")
        return build_error("404 page not found", 404)


class DatasetSource(ApiSource):
    """A dataset on disk.

    Rows that validators, ranges or lists of numbers select are read from its files by one query.
    Other requests are answered in this process as by the local explorer.
    """

    def __init__(self, service: Service) -> None:
        """Read the dataset of *service*."""
        session = ServiceSession(service)
        super().__init__(session, session, public=False)
        self._service = service

    def estimate(self, endpoint: Endpoint, calls: Sequence[Call]) -> RequestEstimate:  # noqa: ARG002
        """Return no requests: none is sent."""
        return RequestEstimate(0)

    def limit_requests(self, most: int) -> None:
        """Return no limit: no request is sent."""

    def fetch_rows(
        self,
        endpoint: Endpoint,
        arguments: Sequence[Mapping[str, Any]],
        chain_head: ChainHead,
        served: ServedRange,
    ) -> Iterator[FetchedRows]:
        """Yield the rows of *endpoint*: in one frame, if one query finds them."""
        fetched = None
        parameters = endpoint.all_parameters
        if parameters and all(parameter.selects_expected for parameter in parameters):
            calls = self.plan(endpoint, arguments, chain_head)
            served.check_not_future(calls)
            fetched = self._read(endpoint, calls, served)
        if fetched is None:
            yield from super().fetch_rows(endpoint, arguments, chain_head, served)
        else:
            yield fetched

    def _read(
        self, endpoint: Endpoint, calls: list[Call], served: ServedRange
    ) -> FetchedRows | None:
        """Return the rows of *calls*; None if only the service can answer, also with an error."""
        view, table, chain_head = self._service.views.current(), endpoint.table, served.chain_head
        if not self._has_units(endpoint, calls, served, view):
            return None
        selections = find_selections(endpoint, calls, view)
        if selections is None:
            return None
        template = table.empty()
        rows = view.dataset.scan(table.table_name)
        rows = rows.filter(*(is_expected(template, expected) for expected in selections))
        omitted = endpoint.omitted_fields(calls[0].fields)
        selected = rows.select(
            pl.lit(None, template.schema[column.name]).alias(column.name)
            if omitted.intersection(column.wire_paths)
            else column.name
            for column in table.columns
        ).collect()
        if endpoint.shape is Shape.OBJECT and selected.height < len(calls):
            return None
        for parameter in endpoint.all_parameters:
            if parameter.has_open_rows and not selected.is_empty():
                selected = parameter.mark_open_rows(selected, chain_head)
        table.check(selected, chain_head.chain)
        count_rows(selected.height)
        stated = ((call, find_uncovered(endpoint, call.fields, view)) for call in calls)
        uncovered = [(call, units) for call, units in stated if units]
        return FetchedRows(
            calls,
            selected,
            not_found=[],
            warnings=[],
            uncovered=uncovered,
            has_all_validators=DATASET_HEADER not in self._service.headers,
        )

    def _has_units(
        self, endpoint: Endpoint, calls: list[Call], served: ServedRange, view: DatasetView
    ) -> bool:
        """Return whether the dataset stores the requested units, and its head is after them."""
        if not calls or view.table_cache.find_absence(endpoint.table.table_name) is not None:
            return False
        parameter = served.parameter
        if parameter is None:
            return True
        requested = [requested_units(endpoint, parameter, call) for call in calls]
        if not all(requested):
            # The latest unit: the service finds its number.
            return False
        units = served.served_units()
        first = 0 if units is None else units.start
        if endpoint is ATTESTATIONS and view.old_attestations is not None:
            first = max(first, view.old_attestations.duty_epochs.stop)
        oldest, newest = min(n.start for n in requested), max(n.stop for n in requested)
        return units is None or (first <= oldest and newest <= units.stop)


def find_selections(
    endpoint: Endpoint, calls: list[Call], view: DatasetView
) -> list[list[ExpectedRows]] | None:
    """Return the rows that *calls* select, one list for each parameter that selects by a column.

    Returns None if a public key is unknown: the service says what that means.
    """
    selections = []
    for parameter, batches in zip(
        endpoint.all_parameters, zip(*(call.batches for call in calls), strict=True), strict=True
    ):
        if parameter.rows_column is None:
            continue
        distinct = {id(batch): batch for batch in batches}.values()
        expected = [rows for batch in distinct for rows in batch.expected]
        for n, rows in enumerate(expected):
            if rows.pubkeys:
                name = parameter.rows_column.name
                indices = [view.index_of(pubkey) for pubkey in rows.pubkeys]
                if None in indices:
                    return None
                expected[n] = replace(rows, values={name: [*rows.values[name], *indices]})
        if len(expected) != len(distinct):
            return None
        selections.append(expected)
    return selections
