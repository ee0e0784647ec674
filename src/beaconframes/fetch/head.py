"""The head of the chain as the service sees it, asked for as seldom as possible."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec

from beaconframes.endpoint import Envelope, Head, Request
from beaconframes.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from beaconframes.calendar import Chain, Unit

log = logging.getLogger("beaconframes.client")

LATEST_STATE = Request(
    "GET",
    "/api/v1/latestState",
    endpoint="GET /api/v1/latestState",
    envelope=Envelope.BARE,
)
ONE_SLOT = 12.0

T = TypeVar("T", bound=msgspec.Struct)


class State(msgspec.Struct):
    """The part of the latest state that says where the chain ends."""

    current_slot: int = msgspec.field(name="currentSlot")
    current_epoch: int = msgspec.field(name="currentEpoch")
    current_finalized_epoch: int = msgspec.field(name="currentFinalizedEpoch")


class SlotSeen(msgspec.Struct):
    """The part of a slot that says which one it is."""

    slot: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Agreement:
    """What several answers say is finalized; replicas of the service may lag, or err."""

    def __init__(self) -> None:
        self.highest = -1
        """The highest that was told: finality never goes back."""
        self.agreed = -1
        """The highest that two answers agree on."""

    def hear(self, told: int) -> None:
        """Take in one more answer."""
        if told < self.highest:
            log.warning(
                "the service says that %d is finalized, and has said %d", told, self.highest
            )
        self.agreed = max(self.agreed, min(self.highest, told))
        self.highest = max(self.highest, told)


class Watch:
    """Knows the head, or asks for it; what it saw is good for one slot."""

    def __init__(self, ask: Callable[[Request], bytes], known: Head | None = None) -> None:
        """Take *known* for granted for ever, or else *ask* the service."""
        self._ask = ask
        self._lock = threading.Lock()
        self.known = known
        self._heard = Agreement()
        self._seen: Head | None = None
        self._seen_at = 0.0

    def forget(self) -> None:
        """Let the next question be asked, however short a while ago it was."""
        self._seen_at = -ONE_SLOT

    def head(self) -> Head:
        """Return the head: one request, unless it was seen within the last slot."""
        if self.known is not None:
            return self.known
        with self._lock:
            if self._seen is None or time.monotonic() - self._seen_at > ONE_SLOT:
                return self._look()
            return self._seen

    def agreed(self, *, ask: bool) -> int:
        """Return the last epoch that two answers call finalized; with *ask*, ask once more."""
        with self._lock:
            if ask:
                self._look()
            return self._heard.agreed

    def _look(self) -> Head:
        state = read(self._ask(LATEST_STATE))
        self._heard.hear(state.current_finalized_epoch)
        seen = Head(state.current_epoch, self._heard.highest, state.current_slot)
        self._seen, self._seen_at = seen, time.monotonic()
        return seen


class Views:
    """Knows the head as generation 2 tells it: the latest and the finalized slot, one at a time."""

    def __init__(self, ask: Callable[[Request], bytes], chain: Chain) -> None:
        """*ask* the service about *chain*."""
        self._ask = ask
        self._chain = chain
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[int, float]] = {}
        self._heard = Agreement()

    def latest(self, unit: Unit, chain: Chain, *, finalized: bool = False) -> int:
        """Return the latest slot, epoch or period: a request, unless it was seen just now."""
        finalized = finalized or unit == "day"
        slot = self.slot("finalized" if finalized else "latest")
        epoch = self._whole(slot) if finalized else slot // chain.slots_per_epoch
        head = Head(epoch, epoch, slot)
        return slot if unit == "slot" else head.latest(unit, chain, finalized=finalized)

    def knows(self, view: str) -> bool:
        """Tell whether the slot that *view* is was seen within the last slot."""
        return time.monotonic() - self._seen.get(view, (0, -ONE_SLOT))[1] <= ONE_SLOT

    def slot(self, view: str) -> int:
        """Return the slot that *view* is now."""
        with self._lock:
            slot, _ = self._seen.get(view, (0, 0.0))
            return slot if self.knows(view) else self._look(view)

    def agreed(self, *, ask: bool) -> int:
        """Return the last epoch that two answers call finalized; with *ask*, ask once more."""
        with self._lock:
            if ask:
                self._look("finalized")
            return self._whole(self._heard.agreed) if self._heard.agreed >= 0 else -1

    def _look(self, view: str) -> int:
        told = slot_in(self._ask(view_of(self._chain, view)))
        if view == "finalized":
            self._heard.hear(told)
        # Replicas of the service may lag: what was seen does not become unseen.
        slot = max(told, self._seen.get(view, (0, 0.0))[0])
        self._seen[view] = slot, time.monotonic()
        return slot

    def _whole(self, slot: int) -> int:
        """Return the last epoch that is finalized when *slot* is the finalized one."""
        epoch, place = divmod(slot, self._chain.slots_per_epoch)
        # Finality comes by whole epochs; this one is named by its first slot, or by its last
        # block, and only the one before is finalized either way.
        return epoch if place == self._chain.slots_per_epoch - 1 else max(epoch - 1, 0)


def view_of(chain: Chain, view: str) -> Request:
    """Return the request for the slot that *view* is."""
    return Request(
        "POST",
        "/api/v2/ethereum/slot",
        body=msgspec.json.encode({"chain": chain.name, "slot": {"view": view}}),
        endpoint="POST /api/v2/ethereum/slot",
        envelope=Envelope.V2,
    )


def alone(data: bytes, kind: type[T]) -> T:
    """Return the object that *data* is, or that is alone in its list."""
    found: T | list[T] = msgspec.json.decode(data, type=kind | list[kind], strict=False)  # type: ignore[valid-type]
    if not isinstance(found, list):
        return found
    if len(found) != 1:
        raise msgspec.ValidationError(f"Expected one `object`, got {len(found)}")
    return found[0]


def slot_in(data: bytes) -> int:
    """Return the number of the slot that *data* describes."""
    try:
        return alone(data, SlotSeen).slot
    except msgspec.MsgspecError as error:
        raise ProtocolError(
            f"the slot makes no sense ({error})", endpoint="POST /api/v2/ethereum/slot"
        ) from None


def read(data: bytes) -> State:
    """Return the state that *data* describes."""
    try:
        state = alone(data, State)
    except msgspec.MsgspecError as error:
        raise ProtocolError(
            f"the latest state makes no sense ({error})", endpoint=LATEST_STATE.endpoint
        ) from None
    if not 0 <= state.current_finalized_epoch <= state.current_epoch:
        raise ProtocolError(
            f"the latest state is impossible: epoch {state.current_epoch}, "
            f"finalized {state.current_finalized_epoch}",
            endpoint=LATEST_STATE.endpoint,
        )
    return state
