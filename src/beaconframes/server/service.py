"""The service of the local explorer: it answers requests from one dataset."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from beaconframes.endpoint import Endpoint, RequestRefused
from beaconframes.endpoint.chain_metadata import CHAIN_HEADER, ChainMetadata, encode_chain_header
from beaconframes.endpoint.identifiers import parse_number
from beaconframes.server import charts, wire
from beaconframes.server.table_cache import TableCache
from beaconframes.server.v2 import ServiceV2, encode_error
from beaconframes.server.v2.rows import SUNSETS
from beaconframes.simulator.old_attestations import OldAttestations
from beaconframes.v1.slot_attestations import SLOT_ATTESTATIONS
from beaconframes.v1.validators import VALIDATORS

if TYPE_CHECKING:
    import polars as pl

    from beaconframes.dataset import Dataset
    from beaconframes.endpoint import Fields
    from beaconframes.server.access import Tier
    from beaconframes.server.wire import Wire

JSON = "application/json"

MAX_PREMIUM_VALIDATORS = 300
PREMIUM_VALIDATORS = replace(
    VALIDATORS,
    parameters=(replace(VALIDATORS.parameters[0], at_most=MAX_PREMIUM_VALIDATORS),),  # type: ignore[call-arg]
)
"""The validator lookup of premium keys, which may name more validators."""
NOSNIFF = {"x-content-type-options": "nosniff"}
"""Browsers do not take an answer for a page or a script, whatever text it quotes."""


class Service:
    """Answers requests from one dataset, which it never changes; all handlers share it."""

    def __init__(self, dataset: Dataset, wire: Wire = "spec") -> None:
        """Answer from *dataset* on one *wire*."""
        self.wire = wire
        self.dataset = dataset
        self.table_cache = TableCache(dataset, public=wire == "public")
        metadata = ChainMetadata.parse(dataset.meta)
        self.chain, self.head = metadata.chain, metadata.head
        self.headers = {CHAIN_HEADER: encode_chain_header(self.chain), **NOSNIFF}
        self.requests = 0
        self._request_lock = threading.Lock()
        self.service_v2 = ServiceV2(self, is_strict=wire == "spec")

    @cached_property
    def indices(self) -> dict[str, int]:
        """Return the validator index of every public key."""
        keys = self.dataset.scan("validators").select("pubkey", "validator_index").collect()
        return dict(keys.iter_rows())

    def index_of(self, pubkey: str) -> int | None:
        """Return the validator index of a public key, or None."""
        return self.indices.get(pubkey)

    @cached_property
    def pubkeys(self) -> dict[int, str]:
        """Return the public key of every validator index."""
        return {index: pubkey for pubkey, index in self.indices.items()}

    def pubkey_of(self, index: int) -> str | None:
        """Return the public key of a validator index, or None."""
        return self.pubkeys.get(index)

    @cached_property
    def old_attestations(self) -> OldAttestations:
        """Return the attestations of epochs that a simulated dataset does not store."""
        return OldAttestations(self.dataset)

    def scan(self, table: str, schema: pl.Schema | None = None) -> pl.LazyFrame:
        """Return the rows of a table, for answers that are derived from several tables.

        A table that does not exist is an error, or has no rows if its *schema* is given.
        """
        return self.table_cache.scan(table, schema)

    def answer(
        self, endpoint: Endpoint, fields: dict[str, str], tier: Tier | None = None
    ) -> Response:
        """Return the answer of a V1 endpoint to a request with these *fields* by a *tier*."""
        self._count_request()
        if tier == "premium" and endpoint is VALIDATORS:
            endpoint = PREMIUM_VALIDATORS
        try:
            translated = wire.translate_fields(endpoint, fields, self, self.wire)
            rows = self.draw_rows(endpoint, translated)
            records = self.table_cache.select_records(endpoint, translated, self, rows)
            body = wire.encode_body(endpoint, records, translated, self.wire)
        except RequestRefused as refusal:
            message = wire.translate_error(endpoint, refusal.message, fields, self, self.wire)
            return build_error(message, 400)
        return Response(body, media_type=JSON, headers=self.headers)

    def draw_rows(self, endpoint: Endpoint, fields: Fields) -> pl.LazyFrame | None:
        """Return rows that a simulated dataset does not store; None if the table has them."""
        if endpoint is not SLOT_ATTESTATIONS:
            return None
        slot = parse_number(fields["slot"])
        epoch = -1 if slot is None else slot // self.chain.slots_per_epoch
        if epoch not in self.old_attestations.epochs:
            return None

        def draw() -> tuple[int, pl.DataFrame]:
            drawn = self.old_attestations.draw(epoch)
            return int(drawn.estimated_size()), drawn

        rows: pl.DataFrame = self.table_cache.get_or_compute(("old attestations", epoch), draw)
        return rows.lazy()

    def answer_v2(self, endpoint: Endpoint, body: bytes, tier: Tier) -> Response:
        """Return the answer of a V2 endpoint to a request with this *body* and a key of *tier*."""
        self._count_request()
        status, content = self.service_v2.answer(endpoint, body, tier)
        headers = dict(self.headers)
        if endpoint.name in SUNSETS:
            headers |= {"deprecation": "true", "sunset": SUNSETS[endpoint.name]}
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
        picture = charts.draw_chart(self.dataset, name)
        if picture is None:
            return build_error("no data available for the requested chart", 400)
        return Response(picture, media_type="image/png", headers=NOSNIFF)

    def _count_request(self) -> None:
        with self._request_lock:
            self.requests += 1


def build_error(message: str, status: int) -> Response:
    """Return an error response of V1."""
    body = msgspec.json.encode({"status": f"ERROR: {message}", "data": None})
    return Response(body, status, media_type=JSON, headers=NOSNIFF)


def build_error_v2(status: int, method: str = "", message: str = "") -> Response:
    """Return an error response of V2."""
    body = encode_error(status, method=method, message=message)
    return Response(body, status, media_type=JSON, headers=NOSNIFF)
