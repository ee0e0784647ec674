"""Answers to V2 requests: checks, rows, pages and the envelope."""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import secrets
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from beaconframes.answers.answer import BAD_REQUEST, NOT_FOUND, describe_refusal, refuse_empty
from beaconframes.answers.selection import build_envelope, select_rows
from beaconframes.answers.v2 import RECORDS, ROWS, UNPAGED, UNSENT
from beaconframes.answers.v2.queues import OldQueuesRecord
from beaconframes.endpoint import ObjectNotFound, RequestRefused, Role, Shape
from beaconframes.endpoint.pagination import PAGE_SIZE
from beaconframes.schema.envelope_context import DATASET_MEMBER
from beaconframes.server.access import find_denial
from beaconframes.v2 import ENDPOINTS
from beaconframes.v2._reward_columns import RewardColumns
from beaconframes.v2.queues import QUEUES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from beaconframes.answers.view import DatasetView, DatasetViews
    from beaconframes.calendar import Chain
    from beaconframes.endpoint import Endpoint
    from beaconframes.server.access import Tier

log = logging.getLogger("beaconframes.server")

ERROR_MESSAGES = {
    400: BAD_REQUEST,
    401: "Unauthorized. Please provide a valid API key.",
    404: NOT_FOUND,
    405: "method not allowed: {method}. all public API endpoints use POST.",
    429: "Rate limit exceeded. Please try again later.",
    500: "internal server error. please try again later.",
}
"""Error messages of the specification, by status."""

REQUIRED = {"slot_withdrawals": ("slot", "chain")}
"""Members that the specification requires; it shows the request of no other endpoint."""

SERVED_CHAINS = ("mainnet", "hoodi")
"""The chains of the specification; another one is served as the first."""

MEMBERS = ("range", "paging", "last_updated", DATASET_MEMBER)
"""The members of an envelope after the data, in their order."""

PAGE_FIELDS = ("cursor", "page_size")
"""Fields that may differ between the pages of one list."""

POSITION_AND_SLOT = ">QQ"


def encode_error(status: int, *, message: str = "", method: str = "") -> bytes:
    """Return the body of an error; the specification's message by default."""
    text = ERROR_MESSAGES.get(status, "An unexpected error occurred.").format(method=method)
    return msgspec.json.encode({"error": message or text})


OLD_QUEUES = replace(QUEUES, name="old_queues", table=OldQueuesRecord)
"""The queues in their shape before July 2026."""


def find_endpoints(*, old_queues: bool = False) -> list[Endpoint]:
    """Return the endpoints that a dataset can answer, with the queues in their old shape or not."""
    served = [endpoint for endpoint in ENDPOINTS if endpoint.name in ROWS]
    return [OLD_QUEUES if old_queues and e is QUEUES else e for e in served]


def is_paged(endpoint: Endpoint) -> bool:
    """Return whether the answers of *endpoint* have pages."""
    pages = endpoint.pagination
    return pages is not None and pages.role is Role.PAGE and endpoint.name not in UNPAGED


class ServiceV2:
    """Answers V2 requests from a dataset."""

    def __init__(self, views: DatasetViews, *, is_strict: bool) -> None:
        """Answer from a dataset; if *is_strict*, refuse what the specification does."""
        self.views = views
        self.is_strict = is_strict
        self._cursors = CursorCodec()

    def answer(self, endpoint: Endpoint, body: bytes, tier: Tier) -> tuple[int, bytes]:
        """Return status and body of the answer to a request with this JSON *body*.

        Raises
        ------
        TableAbsent
            The dataset does not have a table that the answer needs.
        """
        try:
            fields = msgspec.json.decode(body)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            fields = None
        if not isinstance(fields, dict):
            return 400, encode_error(400)
        if (denial := find_denial(endpoint.name, fields, tier)) is not None:
            return 403, encode_error(403, message=denial)
        try:
            return 200, self.encode_answer(endpoint, fields)
        except RequestRefused as refusal:
            status, text = describe_refusal(endpoint, refusal)
            log.info("POST %s: %s: %s", endpoint.path, status, refusal.message)
            return status, encode_error(status, message=text)

    def encode_answer(self, endpoint: Endpoint, fields: dict[str, Any]) -> bytes:
        """Return the body of an answer; raise RequestRefused for a request that is not valid."""
        view = self.views.current()
        if endpoint.parameters_of(Role.CONTEXT):
            check_chain(view.chain, fields.get("chain", SERVED_CHAINS[0]))
        for name in REQUIRED.get(endpoint.name, ()):
            if name not in fields and self.is_strict:
                raise RequestRefused(f"{name} is missing")
        parts: dict[str, bytes] = {}
        if is_paged(endpoint):
            rows, next_cursor, view = self.select_page(endpoint, fields, view)
            parts["paging"] = msgspec.json.encode({"next_cursor": next_cursor})
        else:
            rows = self.select_rows(endpoint, fields, view)
        records = RECORDS.get(endpoint.name, endpoint.table)
        data = records.encode(rows, view.chain, without=UNSENT.get(endpoint.name, ()))
        if endpoint.shape is Shape.OBJECT:
            objects = msgspec.json.decode(data, type=list[msgspec.Raw])
            if not objects and (refusal := refuse_empty(endpoint, fields)) is not None:
                raise refusal
            data = bytes(objects[0])
        parts |= build_envelope(endpoint, fields, view)
        if not view.is_simulated and issubclass(endpoint.table, RewardColumns):
            parts[DATASET_MEMBER] = b'"partial"'
        named = {name: parts[name] for name in MEMBERS if name in parts}
        return msgspec.json.encode(
            {name: msgspec.Raw(part) for name, part in {"data": data, **named}.items()}
        )

    def select_page(
        self, endpoint: Endpoint, fields: dict[str, Any], view: DatasetView
    ) -> tuple[pl.DataFrame, str, DatasetView]:
        """Return the rows of a page, the cursor of the next page, and the view of the whole list.

        All pages of a list are those of the head of its first page.
        """
        size, cursor = fields.get("page_size", PAGE_SIZE), fields.get("cursor", "")
        if type(size) is not int or not 1 <= size <= PAGE_SIZE or not isinstance(cursor, str):
            raise RequestRefused("page_size must be 1 to 10, and cursor must be text")
        first, request_hash = 0, hash_request(endpoint.path, fields)
        if cursor:
            first, slot = self._cursors.decode(cursor, request_hash)
            view = self.views.at(slot)
        rows, end = self.select_rows(endpoint, fields, view), first + size
        has_more = end < rows.height
        next_cursor = self._cursors.encode(end, view.head.slot, request_hash) if has_more else ""
        return rows.slice(first, size), next_cursor, view

    def select_rows(
        self, endpoint: Endpoint, fields: dict[str, Any], view: DatasetView
    ) -> pl.DataFrame:
        """Return all rows that *fields* select, and cache them for the next pages.

        Those of one page are cached from their second request on: few are requested again, and a
        frame of a few rows takes several times the memory that it counts.
        """
        memory = self.views.memory
        name = view.head.slot, view.version, hash_request(endpoint.path, fields)
        if (cached := memory.find(name)) is not None:
            rows: pl.DataFrame = cached[1]
            return rows
        rows = select_rows(endpoint, [fields], view).collect()
        if rows.height > PAGE_SIZE or view.table_cache.count_earlier_requests(name):
            memory.put(name, int(rows.estimated_size()), rows)
        return rows


def check_chain(own: Chain, name: Any) -> None:
    """Raise RequestRefused for another chain; a simulated chain is served as mainnet."""
    served_as = own.name if own.name in SERVED_CHAINS else SERVED_CHAINS[0]
    if name in (own.name, served_as):
        return
    if name in SERVED_CHAINS:
        raise ObjectNotFound(f"{name} is not served here, only {served_as}")
    raise RequestRefused(f"unknown chain {name!r}")


class CursorCodec:
    """Encodes and decodes cursors: opaque texts, valid only for the request that returned them.

    Those of another server are refused.
    """

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(16)

    def encode(self, position: int, slot: int, request_hash: bytes) -> str:
        """Return a cursor to the record at *position* of the answer with the head at *slot*."""
        raw = struct.pack(POSITION_AND_SLOT, position, slot)
        return base64.urlsafe_b64encode(raw + self._sign(raw, request_hash)).decode().rstrip("=")

    def decode(self, cursor: str, request_hash: bytes) -> tuple[int, int]:
        """Return position and slot of *cursor*; raise RequestRefused if it is not valid."""
        try:
            raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        except ValueError:
            raise RequestRefused("cursor is not valid") from None
        size = struct.calcsize(POSITION_AND_SLOT)
        if not hmac.compare_digest(raw[size:], self._sign(raw[:size], request_hash)):
            raise RequestRefused("cursor belongs to another request")
        position, slot = struct.unpack(POSITION_AND_SLOT, raw[:size])
        return int(position), int(slot)

    def _sign(self, raw: bytes, request_hash: bytes) -> bytes:
        return hmac.digest(self._secret, raw + request_hash, "sha256")[:12]


def hash_request(path: str, fields: Mapping[str, Any]) -> bytes:
    """Return a hash of a request that is the same for all its pages."""
    shared = {name: value for name, value in fields.items() if name not in PAGE_FIELDS}
    content = msgspec.json.encode([path, shared], order="deterministic")
    return hashlib.sha256(content).digest()
