"""Selectors of things that are named by text: addresses, transactions, names."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.endpoint.identifiers import cut, each
from beaconframes.endpoint.parameter import Batch, Fields, Parameter, Refused, View, Wanted
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.schema import Column

ADDRESS = r"0x[0-9a-fA-F]{40}"
TRANSACTION = r"0x[0-9a-fA-F]{64}"
CREDENTIALS = r"0x[0-9a-fA-F]{64}"
ENS_NAME = r"[^/?#\s]{3,}\.eth"

BARE = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""An address, a transaction or credentials without the 0x in front."""


@dataclass(frozen=True)
class Texts(Parameter):
    """Things named by text that matches ``pattern``; ``at_once`` of them go into one request.

    ``what`` says in an error what such a thing is. ``column`` is where it stands in the rows, if
    the rows say it; then it is what completeness is judged by.
    """

    arg: str
    _: KW_ONLY
    wire: str
    pattern: str
    what: str
    column: Column | None = None
    at_once: int = 1
    error: str = "invalid request"

    def arguments(self) -> tuple[str, ...]:
        """Return the one argument."""
        return (self.arg,)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the things in lower case, each once, ``at_once`` in a batch."""
        asked = list(dict.fromkeys(self.checked(item) for item in each(values[self.arg])))
        batches = []
        for start in range(0, len(asked), self.at_once):
            batch = asked[start : start + self.at_once]
            wanted = () if self.column is None else (Wanted({self.column.name: batch}),)
            batches.append(Batch({self.wire: ",".join(batch)}, wanted))
        return batches

    def checked(self, item: Any) -> str:
        """Return one thing as it is sent, or refuse it."""
        text = self.canonical(item) if isinstance(item, str) else ""
        if not re.fullmatch(self.pattern, text):
            raise UsageError(f"{self.arg}={cut(item)} is not {self.what}")
        return text

    @staticmethod
    def canonical(text: str) -> str:
        """Return *text* in the one way in which it is sent and compared."""
        lower = text.lower()
        return f"0x{lower}" if BARE.fullmatch(lower) else lower

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the named things."""
        asked = [self.canonical(text) for text in fields[self.wire].split(",")]
        if len(asked) > self.at_once or not all(re.fullmatch(self.pattern, text) for text in asked):
            raise Refused(self.error)
        return rows if self.column is None else rows.filter(pl.col(self.column.name).is_in(asked))
