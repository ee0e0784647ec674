"""Secrets: the API key, and the addresses of nodes, which may contain credentials."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from beaconframes.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable


class Secret:
    """A key that only ``reveal()`` returns: no repr, format, pickle or ``vars`` contains it."""

    __slots__ = ("_reveal",)

    def __init__(
        self, value: str | Secret, *, source: str = "api_key", is_any_text: bool = False
    ) -> None:
        text: Any = value.reveal() if isinstance(value, Secret) else value
        if not isinstance(text, str) or not (is_any_text or re.fullmatch(r"[!-~]+", text)):
            raise ConfigError(
                f"{source} is not a valid key",
                hint="A key is one word of printable ASCII, without quotes, spaces or line breaks",
            )
        # In a closure, because debuggers and error reporters print every attribute they find.
        self._reveal: Callable[[], str] = lambda: text

    def reveal(self) -> str:
        """Return the key itself. Never log, print or store what this returns."""
        return self._reveal()

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return format("***", spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self.reveal() == other.reveal()

    def __hash__(self) -> int:
        return hash((Secret, self.reveal()))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> tuple[Callable[[], Secret], tuple[()]]:
        return _unpickle_secret, ()


def _unpickle_secret() -> Secret:
    """Return a secret without its key: ``reveal()`` raises an error."""

    def reveal() -> str:
        raise ConfigError(
            "the API key is missing, because keys are not pickled",
            hint="Set BEACONFRAMES_API_KEY, or pass api_key= again",
        )

    secret = Secret.__new__(Secret)
    secret._reveal = reveal  # noqa: SLF001
    return secret


def hide_address(value: Any, source: str) -> Secret:
    """Return the address of a node as a secret, because it may contain credentials."""
    if not isinstance(value, str | Secret):
        raise ConfigError(
            f"{source} is not an address",
            hint='Give the address of the node, such as "http://localhost:5052"',
        )
    return Secret(value, source=source, is_any_text=True)
