"""Parameters of V1 that are texts: addresses, hashes, names."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from beaconframes.endpoint import identifiers
from beaconframes.endpoint.parameter import (
    Batch,
    ColumnParameter,
    ExpectedRows,
    JsonSchema,
    NamedParameter,
    Role,
)
from beaconframes.errors import UsageError
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.schema import Column

ADDRESS = r"0x[0-9a-fA-F]{40}"
TRANSACTION = r"0x[0-9a-fA-F]{64}"
CREDENTIALS = r"0x[0-9a-fA-F]{64}"
ENS_NAME = r"[^/?#\s]{3,}\.eth"
BARE_HEX = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""An address, a transaction or credentials without the 0x in front."""


@dataclass(frozen=True)
class Texts(NamedParameter, ColumnParameter):
    """Subjects given as texts that match ``pattern``, one per request.

    ``what`` describes such a text in an error. ``column`` is the column of the text, if rows have
    it; then completeness is checked by it.
    """

    arg: str
    _: KW_ONLY
    wire: str
    pattern: str
    what: str
    column: Column | None = None
    error: str = "invalid request"

    role = Role.SUBJECT

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each text, in lower case and without duplicates."""
        items = identifiers.iterate_items(values[self.arg])
        texts = dict.fromkeys(self.check(item) for item in items)
        if self.column is None:
            return [Batch({self.wire: text}) for text in texts]
        return [
            Batch({self.wire: text}, (ExpectedRows({self.column.name: [text]}),)) for text in texts
        ]

    def check(self, item: Any) -> str:
        """Return one text as it is sent, or raise UsageError."""
        text = self.canonical(item) if isinstance(item, str) else ""
        if not re.fullmatch(self.pattern, text):
            raise UsageError(f"{self.arg}={shorten(item)} is not {self.what}")
        return text

    @staticmethod
    def canonical(text: str) -> str:
        """Return *text* in the one form in which it is sent and compared."""
        lower = text.lower()
        return f"0x{lower}" if BARE_HEX.fullmatch(lower) else lower

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        pattern = self.pattern.replace("0x[", "(?:0[xX])?[")
        return {self.wire: {"type": "string", "pattern": f"^(?:{pattern})$"}}


@dataclass(frozen=True)
class AddressOrName(Texts):
    """Hexadecimal values, or names that end in .eth.

    Rows are selected by the column ``matches``, and sorted by the columns ``order``.
    """

    matches: str
    order: tuple[str, ...]
