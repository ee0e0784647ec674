"""What one attempt came to when it brought no answer, and what a user is to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.errors import (
    BadRequest,
    BeaconframesError,
    ChallengePage,
    ConnectionFailed,
    NotFound,
    NotServed,
    ProtocolError,
    QuotaSpent,
    RateLimited,
    RequestTimeout,
    ServerError,
    TierTooLow,
    TooManyIdentifiers,
    Unauthorized,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ATTEMPTS = 4
QUOTED = 200
"""Characters of foreign text in an error."""

HINTS: dict[type[BeaconframesError], str] = {
    ConnectionFailed: "Check the address and the network, or try again later",
    RequestTimeout: "Try again later, or ask for less in one call",
    RateLimited: "Ask more slowly: bf.connect(rate=...), in requests per second",
    QuotaSpent: "Another key or plan may have requests left",
    Unauthorized: "Set the key with bf.connect(api_key=...) or in BEACONFRAMES_API_KEY",
    TierTooLow: "The plan of this key does not include it; another plan or key may",
    TooManyIdentifiers: "Ask for fewer validators, or with a key of a larger plan",
    BadRequest: "Check what was asked for",
    NotFound: "Check what was asked for",
    NotServed: "Check the address: this service may not have the endpoint, or no longer",
    ServerError: "The trouble is on the service's side: try again later",
    ChallengePage: "Use a key, wait a while, or try from another network",
    ProtocolError: "Check that the address is that of a chain explorer, or try again later",
}


class AttemptFailed(Exception):
    """What one attempt came to when it brought no answer: the error to be, and what to do first.

    It never leaves this package. The public error is made anew from it, so that no traceback
    leads back into frames that hold headers or bodies.
    """

    def __init__(
        self,
        kind: type[BeaconframesError],
        message: str,
        *,
        said: str = "",
        hint: str | None = None,
        attempts: int = ATTEMPTS,
        wait: float | None = None,
        everyone: bool = False,
    ) -> None:
        """Say what it is, how many *attempts* it is worth, and the *wait* that was asked for.

        *said* is foreign text to be quoted, of any length and content. With *everyone* nobody
        else who shares the allowance may send during the wait either.
        """
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.said = said
        self.hint = hint
        self.attempts = attempts
        self.wait = wait
        self.everyone = everyone

    def public(self, endpoint: str, attempts: int, mask: Callable[[str], str]) -> BeaconframesError:
        """Return the error that a user sees, with everything secret masked."""
        # Masked before it is cut: half a key is a leak too.
        quoted = clean(mask(self.said))
        return self.kind(
            mask(f"{self.message}: {quoted}" if quoted else self.message),
            hint=self.hint or HINTS.get(self.kind),
            endpoint=endpoint or None,
            retry_after=self.wait,
            attempts=attempts,
        )


def clean(text: str) -> str:
    """Return *text* on one line, without control characters, cut to what an error may quote."""
    shown = " ".join("".join(c if c.isprintable() else " " for c in text[: 2**16]).split())
    return shown if len(shown) <= QUOTED else f"{shown[: QUOTED - 1]}…"
