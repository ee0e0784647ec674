"""What answers tell besides their data: which part of the chain they are of, and their end."""

from __future__ import annotations

import logging
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from beaconframes.errors import EndpointDeprecated, WindowMoved
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from beaconframes.calendar import Chain
    from beaconframes.endpoint import Call, Endpoint
    from beaconframes.http.response import ResponsePage

log = logging.getLogger("beaconframes.client")

VARIES = ("validator", "cursor", "page_size")
"""Fields of a request that say nothing about the part of the chain that is asked for."""


GENESIS = "x-beaconframes-genesis"
"""The header in which a local explorer tells when its chain began."""


class ResponseWarnings:
    """Reads along while the pages of one load go by; says at the end what there was to see."""

    def __init__(self, endpoint: Endpoint, chain: Chain) -> None:
        self.endpoint, self.chain = endpoint, chain
        self._ranges: dict[bytes, dict[bytes, None]] = {}
        self._asked: dict[int, tuple[object, bytes]] = {}
        self._ends: str | None = None
        self.denied: list[Call] = []
        """What the service said itself that there is not."""

    def along(
        self, found: Iterable[tuple[Call, ResponsePage]]
    ) -> Iterator[tuple[Call, ResponsePage]]:
        """Yield what is *found*, reading along."""
        for call, page in found:
            if (told := page.beside.get("range")) is not None:
                self._ranges.setdefault(self._same(call), {}).setdefault(told)
            if "sunset" in page.headers or "deprecation" in page.headers:
                self._ends = page.headers.get("sunset", "")
            if (began := page.headers.get(GENESIS, "")) not in ("", str(self.chain.genesis)):
                warn_once(self.chain.name, began)
            if page.not_found:
                self.denied.append(call)
            yield call, page

    def _same(self, call: Call) -> bytes:
        """Return what all calls say that ask for the same part of the chain."""
        # The pages of a call share what its selectors said: worked out once, and kept alive.
        if id(call.batches) not in self._asked:
            asked = {name: value for name, value in call.fields.items() if name not in VARIES}
            self._asked[id(call.batches)] = call.batches, msgspec.json.encode(asked)
        return self._asked[id(call.batches)][1]

    def all(self, told: set[str]) -> list[Warning]:
        """Return every warning that there is; about ends, those not *told* yet."""
        both = (self.moved, self.ends(told))
        return [notice for notice in both if notice is not None]

    @property
    def moved(self) -> WindowMoved | None:
        """The warning that pages which belong together are of different parts of the chain."""
        for told in self._ranges.values():
            ranges = [msgspec.json.decode(raw) for raw in told]
            other = next((found for found in ranges if found != ranges[0]), None)
            if other is not None:
                return WindowMoved(
                    f"the window moved while it was read: from {words(ranges[0])} "
                    f"to {words(other)}",
                    endpoint=self.endpoint.route,
                    hint="The rows are of both; name an epoch or a slot to read one state",
                )
        return None

    def ends(self, told: set[str]) -> EndpointDeprecated | None:
        """Return the warning that the endpoint has an end; None if it is among those *told*."""
        route = self.endpoint.route
        if self._ends is None or route in told:
            return None
        told.add(route)
        return EndpointDeprecated(
            f"the service gives this endpoint up{when(self._ends)}",
            endpoint=route,
            hint="A newer version of beaconframes may know what replaces it",
        )


@cache
def warn_once(chain: str, began: str) -> None:
    """Log, once for each of them, that the service is of another chain than is believed."""
    log.warning(
        "times are worked out for %s, and the chain of this local explorer began at %s: open its "
        "folder with bf.local(folder), or with --dataset on the command line",
        *(chain, shorten(began)),
    )


def words(told: Any) -> str:
    """Return a range in words: its epochs, or whatever it has."""
    parts = told if isinstance(told, dict) else {"range": told}
    for unit in ("epoch", "slot", "timestamp"):
        part = parts.get(unit)
        if isinstance(part, dict):
            return f"{unit} {shorten(part.get('start'))} to {shorten(part.get('end'))}"
    return shorten(told)


def when(header: str) -> str:
    """Return when that is, as far as the service says."""
    try:
        return f" on {parsedate_to_datetime(header).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""
