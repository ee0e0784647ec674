"""The service of the local explorer: it answers requests from one dataset."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from beaconframes.answers.charts import draw_chart
from beaconframes.answers.memory_cache import CACHE_BYTES
from beaconframes.answers.selection import find_drawn_epochs, scan_rows
from beaconframes.answers.table_cache import find_kind
from beaconframes.answers.uncovered import find_uncovered, is_uncovered, lists_gaps
from beaconframes.answers.v2 import STORED, SUNSETS
from beaconframes.answers.view import DatasetViews
from beaconframes.dataset import PublishedDataset
from beaconframes.endpoint import Endpoint, RequestRefused
from beaconframes.endpoint.absent_table import ABSENT_TABLE_HEADER, TableAbsent
from beaconframes.endpoint.chain_metadata import (
    CHAIN_HEADER,
    HEAD_HEADER,
    WINDOWS_HEADER,
    ChainMetadata,
    encode_chain_header,
    encode_head,
)
from beaconframes.endpoint.uncovered import (
    DATASET_HEADER,
    LISTS_GAPS,
    UNCOVERED_HEADER,
    encode_uncovered,
)
from beaconframes.server import wire
from beaconframes.server.access import V2_PREFIX
from beaconframes.server.service_v2 import ERROR_MESSAGES, ServiceV2, encode_error
from beaconframes.simulator.dataset_at import SimulatedChain
from beaconframes.v1.validators import VALIDATORS

if TYPE_CHECKING:
    from beaconframes.answers.view import DatasetView
    from beaconframes.dataset import Dataset
    from beaconframes.endpoint import Head
    from beaconframes.endpoint.uncovered import Uncovered
    from beaconframes.server.access import Tier
    from beaconframes.server.wire import Wire
    from beaconframes.simulator.head_clock import HeadClock

JSON = "application/json"
MAX_PREMIUM_VALIDATORS = 300
PREMIUM_VALIDATORS = replace(
    VALIDATORS,
    parameters=(replace(VALIDATORS.parameters[0], at_most=MAX_PREMIUM_VALIDATORS),),  # type: ignore[call-arg]
)
"""The validator lookup of premium keys, which may name more validators."""
NOSNIFF = {"x-content-type-options": "nosniff"}
"""Browsers do not take an answer for a page or a script, whatever text it quotes."""
MESSAGES_V1 = {
    401: "invalid or missing API key",
    429: ERROR_MESSAGES[429],
    500: "internal server error",
}
"""Error messages of V1, by status."""


class Service:
    """Answers requests from one dataset, which only others change; all handlers share it."""

    def __init__(
        self,
        dataset: Dataset,
        wire: Wire = "spec",
        *,
        clock: HeadClock | None = None,
        cache_bytes: int = CACHE_BYTES,
        drops_old_units: bool = False,
        old_queues: bool = False,
    ) -> None:
        """Answer from *dataset* on one *wire*; a live chain has the head of *clock*.

        With *drops_old_units*, units that the public service does not have any more are refused.
        With *old_queues*, the queues of V2 have their shape before July 2026.
        """
        self.wire = wire
        self.old_queues = old_queues
        self.clock = clock
        self.dataset = dataset
        self.views = DatasetViews(
            dataset,
            SimulatedChain(clock),
            public=wire == "public",
            cache_bytes=cache_bytes,
            drops_old_units=drops_old_units,
        )
        self.chain = ChainMetadata.parse(dataset.meta).chain
        self.headers = {
            CHAIN_HEADER: encode_chain_header(self.chain),
            WINDOWS_HEADER: "service" if drops_old_units else "none",
            **NOSNIFF,
        }
        if find_kind(dataset) != "simulation":
            self.headers[DATASET_HEADER] = "partial"
        self.requests = 0
        self._request_lock = threading.Lock()
        self.service_v2 = ServiceV2(self.views, is_strict=wire == "spec")

    @property
    def head(self) -> Head:
        """Return the present head."""
        return self.views.current().head

    def describe_head(self) -> str:
        """Return the present head, and how it moves."""
        head, chain, clock = self.head, self.chain, self.clock
        moment = f"epoch {head.epoch} ({chain.time_of('slot', head.slot):%Y-%m-%d %H:%M} UTC)"
        if clock is not None:
            end = f"{chain.time_of('slot', clock.end.slot):%Y-%m-%d %H:%M} UTC"
            times = "" if clock.speed == 1 else f", {clock.speed:g} times as fast"
            return (
                f"Live from {moment}: a slot every {chain.seconds_per_slot} s{times}, until {end}"
            )
        if self.views.may_change:
            return f"The latest epoch is {moment}; it moves as epochs are added to the dataset"
        return f"The latest epoch stays {moment}; use live=True for a head that follows the clock"

    def answer(
        self, endpoint: Endpoint, fields: dict[str, str], tier: Tier | None = None
    ) -> Response:
        """Return the answer of a V1 endpoint to a request with these *fields* by a *tier*."""
        self._count_request()
        if tier == "premium" and endpoint is VALIDATORS:
            endpoint = PREMIUM_VALIDATORS
        return self.views.read_unchanged(lambda view: self._answer(endpoint, fields, view))

    def _answer(self, endpoint: Endpoint, fields: dict[str, str], view: DatasetView) -> Response:
        try:
            translated = wire.translate_fields(endpoint, fields, view, self.wire)
            drawn = find_drawn_epochs(endpoint, translated, view)
            rows = scan_rows(endpoint, view, drawn) if drawn else None
            records = view.table_cache.select_records(endpoint, translated, view, rows)
            uncovered = find_uncovered(endpoint, translated, view)
            headers = self.headers | build_uncovered_header(uncovered)
            if isinstance(view.dataset, PublishedDataset) and lists_gaps(endpoint, view.dataset):
                headers[DATASET_HEADER] = LISTS_GAPS
            if uncovered and not records and is_uncovered(endpoint, translated, uncovered):
                response = build_error("this dataset does not have the requested rows", 404)
                response.headers.update(headers)
                return response
            body = wire.encode_body(endpoint, records, translated, self.wire)
        except TableAbsent as refusal:
            return self.build_absence(refusal, view)
        except RequestRefused as refusal:
            message = wire.translate_error(endpoint, refusal.message, fields, view, self.wire)
            return build_error(message, 400)
        return Response(body, media_type=JSON, headers=headers)

    def answer_v2(self, endpoint: Endpoint, body: bytes, tier: Tier) -> Response:
        """Return the answer of a V2 endpoint to a request with this *body* and a key of *tier*."""
        self._count_request()
        return self.views.read_unchanged(lambda _: self._answer_v2(endpoint, body, tier))

    def _answer_v2(self, endpoint: Endpoint, body: bytes, tier: Tier) -> Response:
        try:
            status, content = self.service_v2.answer(endpoint, body, tier)
        except TableAbsent as refusal:
            return self.build_absence(refusal, self.views.current(), is_v2=True)
        headers = dict(self.headers)
        if endpoint.name in SUNSETS:
            headers |= {"deprecation": "true", "sunset": SUNSETS[endpoint.name]}
        if endpoint.name in STORED:
            headers |= build_uncovered_header(find_uncovered(endpoint, {}, self.views.current()))
        return Response(content, status, media_type=JSON, headers=headers)

    def answer_health(self) -> Response:
        """Return the age of the latest epoch at the head, in the words of the public service."""
        self._count_request()
        size, seconds = self.chain.slots_per_epoch, self.chain.seconds_per_slot
        minutes, rest = divmod(int(self.head.slot % size * seconds), 60)
        age = f"{minutes}m{rest}s" if minutes else f"{rest}s"
        return Response(
            f"OK. Last epoch is from {age} ago", media_type="text/plain", headers=NOSNIFF
        )

    def answer_chart(self, name: str) -> Response:
        """Return the chart called *name*."""
        self._count_request()
        view = self.views.current()
        try:
            picture = draw_chart(view, name)
        except TableAbsent as refusal:
            return self.build_absence(refusal, view)
        except RequestRefused as refusal:
            return build_error(refusal.message, 400)
        return Response(picture, media_type="image/png", headers=NOSNIFF)

    def build_absence(
        self, refusal: TableAbsent, view: DatasetView, *, is_v2: bool = False
    ) -> Response:
        """Return the error response that names a table which the dataset does not have."""
        text = f"{refusal.message}. {refusal.hint}"
        response = build_error_v2(404, message=text) if is_v2 else build_error(text, 404)
        response.headers.update(self.headers)
        response.headers[ABSENT_TABLE_HEADER] = refusal.absent.encode()
        # Clients cannot read the head from the latest state or from a slot that is absent.
        response.headers[HEAD_HEADER] = encode_head(view.head)
        return response

    def _count_request(self) -> None:
        with self._request_lock:
            self.requests += 1


def build_uncovered_header(uncovered: Uncovered) -> dict[str, str]:
    """Return the header with the units that the dataset does not cover, if there are any."""
    return {UNCOVERED_HEADER: encode_uncovered(uncovered)} if uncovered else {}


def build_error(message: str, status: int) -> Response:
    """Return an error response of V1."""
    body = msgspec.json.encode({"status": f"ERROR: {message}", "data": None})
    return Response(body, status, media_type=JSON, headers=NOSNIFF)


def build_error_v2(status: int, method: str = "", message: str = "") -> Response:
    """Return an error response of V2."""
    body = encode_error(status, method=method, message=message)
    return Response(body, status, media_type=JSON, headers=NOSNIFF)


def build_error_for(path: str, status: int, message: str = "") -> Response:
    """Return an error response in the form of the version that *path* belongs to."""
    if path.startswith(V2_PREFIX):
        return build_error_v2(status, message=message)
    return build_error(message or MESSAGES_V1[status], status)
