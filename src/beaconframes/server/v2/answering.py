"""From a request of generation 2 to its answer."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import msgspec

from beaconframes.endpoint import Absent, Cursor, OnChain, Refused, Shape
from beaconframes.endpoint.cursor import PAGE_SIZE
from beaconframes.server.v2.cursors import Cursors, question_of
from beaconframes.server.v2.ranges import range_of
from beaconframes.server.v2.rows import RANGELESS, RENEWED, SUMMARIES, TABLES
from beaconframes.server.v2.tiers import forbidden
from beaconframes.v2 import ENDPOINTS

if TYPE_CHECKING:
    import polars as pl

    from beaconframes.endpoint import Endpoint, View
    from beaconframes.server.v2.tiers import Tier

HOUR = 3600
"""Seconds after which figures are worked out anew."""

KEPT = 64
"""Answers that are kept for their next pages."""

WORDS = {
    400: "Bad request. Please check your input and try again.",
    401: "Unauthorized. Please provide a valid API key.",
    404: "The requested resource was not found.",
    405: "method not allowed: {method}. all public API endpoints use POST.",
    429: "Rate limit exceeded. Please try again later.",
    500: "internal server error. please try again later.",
}
"""What the specification has the errors say."""

PUBLIC_CHAINS = ("mainnet", "hoodi")


def refused(status: int, *, why: str = "", method: str = "") -> bytes:
    """Return the body of an error."""
    text = why or WORDS.get(status, "An unexpected error occurred.").format(method=method)
    return msgspec.json.encode({"error": text})


def endpoints_of() -> list[Endpoint]:
    """Return the endpoints that a dataset can answer for."""
    return [endpoint for endpoint in ENDPOINTS if endpoint.name in TABLES]


class Generation2:
    """A dataset that answers requests of generation 2."""

    def __init__(self, view: View) -> None:
        """Answer from what *view* sees."""
        self.view = view
        self._cursors = Cursors()
        self._kept: OrderedDict[bytes, pl.DataFrame] = OrderedDict()
        self._lock = threading.Lock()

    def answer(self, endpoint: Endpoint, raw: bytes, tier: Tier) -> tuple[int, bytes]:
        """Return the status and the body of the answer to a request with the body *raw*."""
        try:
            body = msgspec.json.decode(raw)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            body = None
        if not isinstance(body, dict):
            return 400, refused(400)
        if (why := forbidden(endpoint.name, body, tier)) is not None:
            return 403, refused(403, why=why)
        try:
            return 200, self.found(endpoint, body)
        except Absent:
            return 404, refused(404)
        except Refused:
            return 400, refused(400)

    def found(self, endpoint: Endpoint, body: dict[str, Any]) -> bytes:
        """Return the body of an answer; raise Refused for a request that cannot be answered."""
        if any(isinstance(parameter, OnChain) for parameter in endpoint.all_parameters):
            self.judge_chain(body.get("chain", PUBLIC_CHAINS[0]))
        question = question_of(endpoint.path, body)
        parts = {}
        if isinstance(endpoint.pagination, Cursor):
            size, place = body.get("page_size", PAGE_SIZE), body.get("cursor", "")
            if type(size) is not int or not 1 <= size <= PAGE_SIZE or not isinstance(place, str):
                raise Refused("page_size must be 1 to 10, and cursor a text")
            first = self._cursors.place(place, question)
            rows = self.rows(endpoint, body, question)
            more = first + size < rows.height
            cursor = self._cursors.after(first + size, question) if more else ""
            parts["paging"] = msgspec.Raw(msgspec.json.encode({"next_cursor": cursor}))
            rows = rows.slice(first, size)
        else:
            rows = self.rows(endpoint, body, question)
        data = endpoint.table.encode(rows, self.view.chain)
        if endpoint.shape is Shape.OBJECT:
            records = msgspec.json.decode(data, type=list[msgspec.Raw])
            if not records:
                raise Absent(f"no {endpoint.name}")
            data = bytes(records[0])
        if endpoint.name in RENEWED:
            hour = int(self.view.chain.time_of("slot", self.view.head.slot).timestamp()) // HOUR
            parts["last_updated"] = msgspec.Raw(msgspec.json.encode(hour * HOUR))
        if endpoint.name not in RANGELESS:
            told = range_of(endpoint, body, self.view)
            parts = {"range": msgspec.Raw(msgspec.json.encode(told)), **parts}
        return msgspec.json.encode({"data": msgspec.Raw(data), **parts})

    def judge_chain(self, chain: Any) -> None:
        """Refuse a request for another chain; a simulated one stands for mainnet."""
        own = self.view.chain.name
        stands_for = own if own in PUBLIC_CHAINS else PUBLIC_CHAINS[0]
        if chain in (own, stands_for):
            return
        if chain in PUBLIC_CHAINS:
            raise Absent(f"{chain} is not served here")
        raise Refused("there is no such chain")

    def rows(self, endpoint: Endpoint, body: dict[str, Any], question: bytes) -> pl.DataFrame:
        """Return all rows that *body* selects, kept for the pages to come."""
        with self._lock:
            if question in self._kept:
                self._kept.move_to_end(question)
                return self._kept[question]
        rows = endpoint.select(TABLES[endpoint.name](self.view), body, self.view)
        if endpoint.name in SUMMARIES:
            rows = SUMMARIES[endpoint.name](rows)
            for parameter in endpoint.all_parameters:
                rows = parameter.of_sums(rows, body)
        found = rows.collect()
        with self._lock:
            self._kept[question] = found
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found
