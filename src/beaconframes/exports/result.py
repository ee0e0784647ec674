"""What an export came to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Export:
    """What was written, and what is missing.

    ``path`` is the folder or the file; ``tables`` has the rows of each table. ``added`` counts the
    files that this call wrote and ``kept`` those that were there already. ``gaps`` names every row
    that was asked for and did not come, as the manifest does; the export is ``complete`` if there
    are none. ``until`` is the last epoch, slot or day (``unit`` says which) where something was
    asked for up to then; what was not final when the export began is left for the next one.
    """

    path: Path | str
    tables: dict[str, int]
    bytes: int
    added: int
    kept: int = 0
    gaps: tuple[dict[str, Any], ...] = field(default=())
    until: int | None = None
    unit: str = ""

    @property
    def rows(self) -> int:
        """Return the rows of all tables."""
        return sum(self.tables.values())

    @property
    def complete(self) -> bool:
        """Tell whether nothing that was asked for is missing."""
        return not self.gaps

    def at(self, address: str) -> Export:
        """Return the same export, which lies at another place now."""
        return replace(self, path=address)

    def __repr__(self) -> str:
        """Return where it is, how large, and what is missing."""
        files = f"{self.added + self.kept:,} files ({self.added:,} new)"
        gaps = "" if self.complete else f", {len(self.gaps):,} gaps"
        size = f"{self.bytes / 1e6:,.1f} MB"
        end = "" if self.until is None or not self.unit else f", up to {self.unit} {self.until}"
        return f"Export({str(self.path)!r}: {self.rows:,} rows{end}, {files}, {size}{gaps})"
