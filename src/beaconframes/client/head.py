"""The head of the chain as the service sees it, asked for as seldom as possible."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import msgspec

from beaconframes.endpoint import Envelope, Head, Request
from beaconframes.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

LATEST_STATE = Request(
    "GET",
    "/api/v1/latestState",
    endpoint="GET /api/v1/latestState",
    envelope=Envelope.BARE,
)
ONE_SLOT = 12.0


class State(msgspec.Struct):
    """The part of the latest state that says where the chain ends."""

    current_slot: int = msgspec.field(name="currentSlot")
    current_epoch: int = msgspec.field(name="currentEpoch")
    current_finalized_epoch: int = msgspec.field(name="currentFinalizedEpoch")


class Watch:
    """Knows the head, or asks for it; what it saw is good for one slot."""

    def __init__(self, ask: Callable[[Request], bytes], known: Head | None = None) -> None:
        """Take *known* for granted for ever, or else *ask* the service."""
        self._ask = ask
        self._lock = threading.Lock()
        self.known = known
        self._seen: Head | None = None
        self._seen_at = 0.0

    def head(self) -> Head:
        """Return the head: one request, unless it was seen within the last slot."""
        if self.known is not None:
            return self.known
        with self._lock:
            if self._seen is None or time.monotonic() - self._seen_at > ONE_SLOT:
                state = read(self._ask(LATEST_STATE))
                # Replicas of the service may lag: finality never goes back.
                before = self._seen.finalized_epoch if self._seen else 0
                finalized = max(before, state.current_finalized_epoch)
                self._seen = Head(state.current_epoch, finalized, state.current_slot)
                self._seen_at = time.monotonic()
            return self._seen


def read(data: bytes) -> State:
    """Return the state that *data* describes."""
    try:
        state: Any = msgspec.json.decode(data, type=State, strict=False)
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
    return state  # type: ignore[no-any-return]
