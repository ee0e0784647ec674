"""Requests to a beacon node: each answer is checked as far as one answer allows."""

from __future__ import annotations

import functools
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from beaconframes.beacon_node.client.session import QUICK
from beaconframes.consensus.spec import Spec
from beaconframes.errors import IntegrityError, SchemaError, UsageError
from beaconframes.http.status_errors import NOT_JSON

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from beaconframes.beacon_node.client.session import NodeSession
    from beaconframes.http.response import ResponsePage

T = TypeVar("T")

MAX_SLOT: Final = 2**40
"""No chain has a head after it."""

QUIRKS: Final = {
    "empty-data": ("any", "measured: Lodestar v1.5.1; beacon-APIs#449"),
    "old-genesis": ("Lodestar v1.5.1", "measured: recordings of this client"),
    "sync-reward-is-balance": ("Lodestar v1.38.0", "ChainSafe/lodestar#8718"),
    "no-inactivity": (
        "Lighthouse before v4.5.0, Teku until the end of 2023",
        "sigp/lighthouse#4512, Consensys/teku#7553",
    ),
    "positive-inactivity": ("Nimbus, development versions", "status-im/nimbus-eth2#8649"),
    "reorganization": ("any", "by design of the chain"),
}
"""Clients and evidence of the quirks that errors name; docs/own-node-index.md has all quirks."""


class CheckedRequests:
    """Requests to one node: thread-safe, with connections that stay open."""

    def __init__(self, session: NodeSession) -> None:
        """Send requests by *session*."""
        self.session = session
        self.corrected: Counter[str] = Counter()
        """How often each quirk was repaired, by name."""
        self._lock = threading.Lock()
        self.optimistic_slot: int | None = None
        """The first slot of which a response was optimistic, since the head was read last.

        None if the execution node has verified all blocks. If only the head was requested, a slot
        after it.
        """

    def __repr__(self) -> str:
        client = self.session.client_version
        return f"BeaconApi({self.url!r}{f', client={client!r}' if client else ''})"

    def __reduce__(self) -> NoReturn:
        """Raise a UsageError: connections cannot be pickled, and credentials must not be."""
        raise UsageError(
            "a BeaconApi cannot be pickled or copied",
            hint="Create one from the address of the node in each process",
        )

    @property
    def url(self) -> str:
        """Return the address without credentials."""
        return self.session.url

    @property
    def request_count(self) -> int:
        """Return the number of requests, retries included."""
        return self.session.request_count

    def close(self) -> None:
        """Close all connections; a later request opens new ones."""
        self.session.close()

    def version(self) -> str:
        """Return client and version, such as ``Lighthouse/v8.0.1-9f31cd0``; requested once."""
        if not self.session.client_version:
            page = self._fetch("/eth/v1/node/version", timeouts=QUICK)
            data = self._decode("/eth/v1/node/version", page.data, dict[str, Any])
            version = data.get("version")
            if not isinstance(version, str) or not version:
                raise self._schema_error("/eth/v1/node/version", "has no version")
            self.session.client_version = version[:120]
        return self.session.client_version

    def syncing(self) -> dict[str, Any]:
        """Return whether the node is synchronizing, and how far it is behind."""
        return self._get_object("/eth/v1/node/syncing")

    def spec(self) -> dict[str, Any]:
        """Return the constants of the chain as the node states them."""
        return self._get_object("/eth/v1/config/spec")

    @functools.cached_property
    def chain_spec(self) -> Spec:
        """Return the constants of the chain, parsed; requested once, by two requests."""
        return Spec.parse(self.spec(), self._get_object("/eth/v1/beacon/genesis"))

    def _fetch(self, route: str, path_arguments: Any = None, **options: Any) -> ResponsePage:
        page = self.session.fetch(route, path_arguments, **options)
        if page.envelope_fields.get("execution_optimistic") == b"true":
            self._note_optimistic(path_arguments or {})
        return page

    def _note_optimistic(self, path_arguments: Mapping[str, object]) -> None:
        """Note the slot of a response whose block the execution node has not verified."""
        given = path_arguments.get("state_id", path_arguments.get("block_id"))
        if "epoch" in path_arguments:
            given = self.chain_spec.first_slot_of(int(str(path_arguments["epoch"])))
        slot = int(str(given)) if str(given).isdigit() else MAX_SLOT
        with self._lock:
            known = self.optimistic_slot
            self.optimistic_slot = slot if known is None else min(slot, known)

    def _get_object(
        self, route: str, path_arguments: Any = None, kind: type[Any] | None = None
    ) -> dict[str, Any]:
        page = self._fetch(route, path_arguments)
        if kind is not None:
            self._decode(route, page.data, kind)
        return self._decode(route, page.data, dict[str, Any])

    def _decode(self, route: str, data: bytes, kind: type[T]) -> T:
        """Return JSON *data* as a value of this *kind*; numbers may be strings."""
        try:
            value: T = msgspec.json.decode(data, type=kind, strict=False)
        except NOT_JSON as error:
            raise self._schema_error(route, f"is invalid: {error}") from None
        return value

    def _check_slot(self, route: str, requested: int | str, slot: int | str) -> None:
        """Raise IntegrityError if the answer is for another slot than the *requested* one."""
        if str(requested).isdigit() and str(slot) != str(requested):
            raise self._integrity_error(
                route,
                f"slot {requested} was requested, but the response is for slot {slot}",
                "reorganization",
                hint="Repeat the request; request finalized slots only",
            )

    def count_correction(self, quirk: str) -> None:
        """Count that a *quirk* of the client was repaired."""
        with self._lock:
            self.corrected[quirk] += 1

    def _schema_error(self, route: str, problem: str) -> SchemaError:
        return SchemaError(
            f"the response of {self._client()} {problem}",
            hint="Check that the address is that of a beacon node, and update the client",
            endpoint=route,
        )

    def _integrity_error(
        self, route: str, problem: str, quirk: str = "", hint: str | None = None
    ) -> IntegrityError:
        """Return the error for an impossible answer, with the known *quirk* that explains it."""
        message = f"{self._client()}: {problem}"
        if quirk:
            clients, evidence = QUIRKS[quirk]
            message += f" (known of {clients}: {quirk}, {evidence})"
        return IntegrityError(
            message,
            hint=hint or "Update the client; rewards can also be computed from SSZ states",
            endpoint=route,
        )

    def _client(self) -> str:
        return self.session.client_version or "the node"
