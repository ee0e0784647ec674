"""The head of the chain as the service states it, requested at most once in 12 seconds."""

from __future__ import annotations

import copy
import logging
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

from beaconframes.endpoint import Envelope, Head, Request
from beaconframes.errors import (
    BadRequest,
    NotFound,
    NotServed,
    ProtocolError,
    ResponseError,
    TableNotInDataset,
)
from beaconframes.http.status_errors import NOT_JSON
from beaconframes.load_context import LOAD

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from beaconframes.calendar import Chain, Unit

log = logging.getLogger("beaconframes.fetch")

LATEST_STATE = Request(
    "GET",
    "/api/v1/latestState",
    endpoint="GET /api/v1/latestState",
    envelope=Envelope.BARE,
)
HEAD_MAX_AGE = 12.0
"""Seconds for which a head is used again: a slot of mainnet."""

HEAD_NOT_SERVED = (BadRequest, NotFound, NotServed, ResponseError)
"""The errors of a service that does not have the endpoint of the head."""

T = TypeVar("T", bound=msgspec.Struct)


class LatestState(msgspec.Struct):
    """The fields of the latest state that describe the head of the chain."""

    current_slot: int = msgspec.field(name="currentSlot")
    current_epoch: int = msgspec.field(name="currentEpoch")
    current_finalized_epoch: int = msgspec.field(name="currentFinalizedEpoch")


class SlotNumber(msgspec.Struct):
    """The number of a slot."""

    slot: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


def read_pinned() -> dict[object, Any]:
    """Return the heads that the running load has read; they can be changed."""
    heads = LOAD.get().heads
    return {} if heads is None else heads


class StatedHead:
    """The head as the service states it, and the finalized epoch or slot of its responses.

    Replicas of the service may lag or err.
    """

    _highest = -1
    """The highest reported value: finality never goes back."""
    _agreed = -1
    """The highest value that two responses agree on."""

    def __init__(
        self,
        fetch: Callable[[Request], bytes],
        stated: Callable[[], Head | None] = lambda: None,
    ) -> None:
        """Fetch the head with *fetch*.

        A dataset without a table of the latest state has *stated* its head in a header.
        """
        self._fetch, self._stated = fetch, stated
        self._lock = threading.Lock()

    def copy(self, fetch: Callable[[Request], bytes]) -> Self:
        """Return a copy that requests with *fetch*; this head does not get its responses."""
        copied = copy.copy(self)
        vars(copied)["_fetch"] = fetch
        return copied

    def _add_final(self, stated: int) -> None:
        """Add the finalized epoch or slot of one more response."""
        if stated < self._highest:
            log.warning(
                "the service reports that %d is finalized, but reported %d before",
                stated,
                self._highest,
            )
        self._agreed = max(self._agreed, min(self._highest, stated))
        self._highest = max(self._highest, stated)

    def recent(self) -> Head | None:
        """Return the head if it was fetched in the last 12 seconds; sends no request."""
        return None


class HeadV1(StatedHead):
    """The head as V1 states it, in one response; or a head that is *fixed*."""

    fixed: Head | None = None
    last: Head | None = None
    """The last head that the service reported, of any age."""
    _fetched_at = 0.0

    def recent(self) -> Head | None:
        """Return the head if it was fetched in the last 12 seconds; sends no request."""
        is_recent = time.monotonic() - self._fetched_at <= HEAD_MAX_AGE
        return self.last if is_recent else None

    def expire(self) -> None:
        """Discard the fetched head, so that its next use requests it again."""
        self._fetched_at = -HEAD_MAX_AGE

    def head(self) -> Head:
        """Return the head: one request, unless it was fetched in the last 12 seconds."""
        if self.fixed is not None:
            return self.fixed
        pinned: dict[object, Head] = read_pinned()
        if self in pinned:
            return pinned[self]
        with self._lock:
            head = self.last
            if head is None or time.monotonic() - self._fetched_at > HEAD_MAX_AGE:
                stated = self._refresh()
                # Replicas of the service may lag: finality never goes back.
                head = self.last = replace(stated, finalized_epoch=self._highest)
        pinned[self] = head
        return head

    def reread(self) -> Head:
        """Request the head again; another replica of the service may report a lower one."""
        with self._lock:
            head = self.last = self._refresh()
        read_pinned()[self] = head
        return head

    def agreed(self, *, refresh: bool) -> int:
        """Return the last epoch that two responses call final; with *refresh*, request one more."""
        with self._lock:
            if refresh:
                stated = self._refresh()
                self.last = replace(stated, finalized_epoch=self._highest)
            return self._agreed

    def _refresh(self) -> Head:
        """Return the head as one more response states it."""
        head = self._request()
        self._add_final(head.finalized_epoch)
        self._fetched_at = time.monotonic()
        return head

    def _request(self) -> Head:
        try:
            state = parse_latest_state(self._fetch(LATEST_STATE))
        except TableNotInDataset:
            if (head := self._stated()) is None:
                raise
            return head
        return Head(state.current_epoch, state.current_finalized_epoch, state.current_slot)


class HeadV2(StatedHead):
    """The head as V2 states it: the latest and the finalized slot, in one response each."""

    def __init__(
        self,
        fetch: Callable[[Request], bytes],
        chain: Chain,
        stated: Callable[[], Head | None] = lambda: None,
    ) -> None:
        """Fetch the head of *chain* from the service."""
        super().__init__(fetch, stated)
        self._chain = chain
        self._slots: dict[str, tuple[int, float]] = {}

    def head(self) -> HeadV2:
        """Return this head, which fetches only the slots that are used."""
        return self

    @property
    def last(self) -> Head | None:
        """Return the last head that the service reported, of any age; at least epoch 0 is final."""
        if not self._slots:
            return None
        finalized, latest = (self._slots.get(v, (0, 0.0))[0] for v in ("finalized", "latest"))
        latest = max(finalized, latest)
        return Head(latest // self._chain.slots_per_epoch, self._final_epoch(finalized), latest)

    def latest(self, unit: Unit, chain: Chain, *, finalized: bool = False) -> int:
        """Return the latest slot, epoch, day or period, from a response of the last 12 seconds."""
        finalized = finalized or unit == "day"
        slot = self.slot("finalized" if finalized else "latest")
        epoch = self._final_epoch(slot) if finalized else slot // chain.slots_per_epoch
        head = Head(epoch, epoch, slot)
        return slot if unit == "slot" else head.latest(unit, chain, finalized=finalized)

    def is_fresh(self, view: str) -> bool:
        """Return whether the slot of *view* was fetched in the last 12 seconds."""
        return time.monotonic() - self._slots.get(view, (0, -HEAD_MAX_AGE))[1] <= HEAD_MAX_AGE

    def slot(self, view: str) -> int:
        """Return the slot of *view*: ``latest`` or ``finalized``."""
        pinned: dict[object, int] = read_pinned()
        if (self, view) in pinned:
            return pinned[self, view]
        with self._lock:
            slot, _ = self._slots.get(view, (0, 0.0))
            slot = slot if self.is_fresh(view) else self._refresh(view)
        pinned[self, view] = slot
        return slot

    def reread(self) -> HeadV2:
        """Discard the slots, so that the next use requests them; they may be lower."""
        with self._lock:
            self._slots = {}
        for view in ("latest", "finalized"):
            read_pinned().pop((self, view), None)
        return self

    def agreed(self, *, refresh: bool) -> int:
        """Return the last epoch that two responses call final; with *refresh*, request one more."""
        with self._lock:
            if refresh:
                self._refresh("finalized")
            return self._final_epoch(self._agreed) if self._agreed >= 0 else -1

    def _refresh(self, view: str) -> int:
        stated = self._request(view)
        if view == "finalized":
            self._add_final(stated)
        # Replicas of the service may lag: the head never goes back.
        slot = max(stated, self._slots.get(view, (0, 0.0))[0])
        # A new dictionary, because copies of this head have the old one.
        self._slots = {**self._slots, view: (slot, time.monotonic())}
        return slot

    def _request(self, view: str) -> int:
        request = Request(
            "POST",
            "/api/v2/ethereum/slot",
            body=msgspec.json.encode({"chain": self._chain.name, "slot": {"view": view}}),
            endpoint="POST /api/v2/ethereum/slot",
            envelope=Envelope.V2,
        )
        try:
            return parse_one(self._fetch(request), SlotNumber, "slot", request.endpoint).slot
        except TableNotInDataset:
            if (head := self._stated()) is None:
                raise
            return head.latest("slot", self._chain, finalized=view == "finalized")

    def _final_epoch(self, slot: int) -> int:
        """Return the last epoch that is final when *slot* is the finalized slot."""
        epoch, position = divmod(slot, self._chain.slots_per_epoch)
        # Only whole epochs become final. The finalized slot may be the first slot of the next
        # epoch, or the last slot with a block. In both cases only the epoch before it is final.
        return epoch if position == self._chain.slots_per_epoch - 1 else max(epoch - 1, 0)


def encode_stated_head(request: Request, head: Head, chain: Chain) -> bytes:
    """Return the response to a *request* for the head, of a service whose head is *head*."""
    if request.envelope is not Envelope.V2:
        return msgspec.json.encode(LatestState(head.slot, head.epoch, head.finalized_epoch))
    is_final = b'"finalized"' in (request.body or b"")
    return msgspec.json.encode(SlotNumber(head.latest("slot", chain, finalized=is_final)))


def parse_one(data: bytes, kind: type[T], what: str, endpoint: str) -> T:
    """Return the JSON object in *data*, called *what*: it may be the only item of a list."""
    try:
        decoded: T | list[T] = msgspec.json.decode(data, type=kind | list[kind], strict=False)  # type: ignore[valid-type]
        if not isinstance(decoded, list):
            return decoded
        if len(decoded) != 1:
            raise msgspec.ValidationError(f"Expected one `object`, got {len(decoded)}")
        return decoded[0]
    except NOT_JSON as error:
        raise ProtocolError(f"the {what} cannot be read ({error})", endpoint=endpoint) from None


def parse_latest_state(data: bytes) -> LatestState:
    """Return the latest state in *data*."""
    state = parse_one(data, LatestState, "latest state", LATEST_STATE.endpoint)
    if not 0 <= state.current_finalized_epoch <= state.current_epoch:
        raise ProtocolError(
            f"the latest state is invalid: its finalized epoch is {state.current_finalized_epoch}, "
            f"its current epoch {state.current_epoch}",
            endpoint=LATEST_STATE.endpoint,
        )
    return state
