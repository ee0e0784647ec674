"""Warnings from responses: a window that moved, a deprecated endpoint, another chain."""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from beaconframes.endpoint import Finality
from beaconframes.endpoint.chain_metadata import CHAIN_HEADER, parse_chain_header
from beaconframes.endpoint.uncovered import (
    DATASET_HEADER,
    LISTS_GAPS,
    UNCOVERED_HEADER,
    parse_uncovered,
)
from beaconframes.errors import ConfigError, EndpointDeprecated, WindowMoved
from beaconframes.http.retry import parse_date
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beaconframes.calendar import Chain
    from beaconframes.endpoint import Call, Endpoint
    from beaconframes.endpoint.uncovered import Uncovered
    from beaconframes.http.response import ResponsePage

log = logging.getLogger("beaconframes.fetch")

NON_RANGE_FIELDS = ("validator", "cursor", "page_size")
"""Fields of a request that do not select a part of the chain."""


class ResponseWarnings:
    """Observes the pages of one load, and returns the warnings at its end."""

    def __init__(self, endpoint: Endpoint, chain: Chain) -> None:
        self.endpoint, self.chain = endpoint, chain
        self.ranges: dict[bytes, dict[bytes, None]] = {}
        """The JSON texts of the ranges that responses state, by request."""
        self._keys: dict[int, tuple[object, bytes]] = {}
        self._sunset: str | None = None
        self.has_all_validators = True
        """False for a dataset that may have some validators only."""
        self._list_gaps: set[bool] = set()
        """Whether the pages so far are those of a dataset that lists its gaps."""
        self.uncovered: list[tuple[Call, Uncovered]] = []
        """The calls whose units the dataset does not all cover, with these units."""

    def observe(self, pages: Iterable[tuple[Call, ResponsePage]]) -> list[Call]:
        """Read the headers and envelopes of *pages*; return the calls with a not-found response."""
        not_found = []
        for call, page in pages:
            if (stated := page.envelope_fields.get("range")) is not None:
                self.ranges.setdefault(self._range_key(call), {}).setdefault(stated)
            if "sunset" in page.headers or "deprecation" in page.headers:
                self._sunset = page.headers.get("sunset", "")
            if (header := page.headers.get(CHAIN_HEADER)) is not None:
                check_chain(self.chain, header)
            if DATASET_HEADER in page.headers:
                self.has_all_validators = False
            self._list_gaps.add(page.headers.get(DATASET_HEADER) == LISTS_GAPS)
            if header := page.headers.get(UNCOVERED_HEADER):
                self.uncovered.append((call, parse_uncovered(header)))
            if page.not_found:
                not_found.append(call)
        return not_found

    def _range_key(self, call: Call) -> bytes:
        """Return a key that is equal for calls that request the same part of the chain."""
        # The pages of a call share its batches. The reference keeps their id from being reused.
        if id(call.batches) not in self._keys:
            fields = {n: value for n, value in call.fields.items() if n not in NON_RANGE_FIELDS}
            self._keys[id(call.batches)] = call.batches, msgspec.json.encode(fields)
        return self._keys[id(call.batches)][1]

    def all(self, reported_sunsets: set[str]) -> list[Warning]:
        """Return every warning; the sunset of an endpoint only once per *reported_sunsets*."""
        warnings: list[Warning] = []
        if (moved := self.moved_window) is not None:
            warnings.append(moved)
        if self._sunset is not None:
            warnings += warn_of_sunset(self.endpoint, self._sunset, reported_sunsets)
        return warnings

    @property
    def has_all_rows(self) -> bool:
        """Return whether a dataset has all rows but those that it states as uncovered."""
        return self._list_gaps == {True}

    @property
    def moved_window(self) -> WindowMoved | None:
        """Return the warning for pages of one window that cover different parts of the chain.

        There is none for published rows: they are the same in every window.
        """
        if self.endpoint.finality is Finality.WHEN_PUBLISHED:
            return None
        for stated in self.ranges.values():
            ranges = [msgspec.json.decode(raw) for raw in stated]
            other = next((item for item in ranges if item != ranges[0]), None)
            if other is not None:
                return WindowMoved(
                    f"the window moved while it was read: from {describe_range(ranges[0])} "
                    f"to {describe_range(other)}",
                    endpoint=self.endpoint.route,
                    hint="The rows are from both. Pass an epoch or a slot to read a single range",
                )
        return None


def warn_of_sunset(endpoint: Endpoint, header: str, reported: set[str]) -> list[Warning]:
    """Return the warning that an endpoint will end, as stated in a sunset *header*.

    There is none if it is one of the routes that were *reported*.
    """
    if endpoint.route in reported:
        return []
    reported.add(endpoint.route)
    date = parse_date(header)
    when = "" if date is None else f" on {date:%Y-%m-%d %H:%M} UTC"
    other = "Check whether a newer version of beaconframes has its replacement"
    warning = EndpointDeprecated(
        f"the service will remove this endpoint{when}",
        endpoint=endpoint.route,
        hint=f"Use {endpoint.replaced_by}" if endpoint.replaced_by else other,
    )
    return [warning]


@cache
def check_chain(chain: Chain, header: str) -> None:
    """Raise ConfigError if the *header* of a response states another chain than *chain*."""
    stated = parse_chain_header(header)
    differences = [
        f"{name} {getattr(stated, name)}, not {getattr(chain, name)}"
        for name in vars(chain)
        if name != "name" and getattr(stated, name) != getattr(chain, name)
    ]
    if differences:
        raise ConfigError(
            f"the service has another chain than {chain.name}: {'; '.join(differences)}",
            hint="Omit chain= to use the chain that a service on this machine states",
        )


def describe_range(stated: Any) -> str:
    """Return a range as text: its epochs, slots or times."""
    parts = stated if isinstance(stated, dict) else {"range": stated}
    for unit in ("epoch", "slot", "timestamp"):
        part = parts.get(unit)
        if isinstance(part, dict):
            return f"{unit} {shorten(part.get('start'))} to {shorten(part.get('end'))}"
    return shorten(stated)
