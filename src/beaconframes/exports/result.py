"""The result of an export."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from beaconframes.summary import format_bytes, render_html

if TYPE_CHECKING:
    from pathlib import Path

NOT_FINAL = "not final yet"
"""The reason of a gap whose rows may still change."""


@dataclass(frozen=True)
class Export:
    """The written files and the missing rows of an export.

    ``path`` is the folder or the file; ``tables`` has the number of rows of each table. ``added``
    counts the new files, ``unchanged`` the files of earlier exports. ``gaps`` lists all requested
    rows that are missing, as the manifest does; an export without gaps is ``complete``. ``until``
    is the last exported epoch, slot or day (``unit`` says which) of a loader. Requested rows that
    are not final yet are gaps as well, with this ``reason``; a range without an end, or with a
    relative end, ends at the last final unit instead.
    """

    path: Path | str
    tables: dict[str, int]
    bytes: int
    added: int
    unchanged: int = 0
    gaps: tuple[dict[str, Any], ...] = field(default=())
    until: int | None = None
    unit: str = ""

    @property
    def rows(self) -> int:
        """Return the number of rows of all tables."""
        return sum(self.tables.values())

    @property
    def complete(self) -> bool:
        """Return whether no requested row is missing."""
        return not self.gaps

    def with_path(self, path: Path | str) -> Export:
        """Return the same export with another path."""
        return replace(self, path=path)

    def __repr__(self) -> str:
        """Return the path, the size and the number of gaps."""
        count = self.added + self.unchanged
        files = f"{count:,} file{'' if count == 1 else 's'} ({self.added:,} new)"
        gaps = "" if self.complete else f", {len(self.gaps):,} gaps"
        if any(gap.get("reason") == NOT_FINAL for gap in self.gaps):
            gaps += " (rows not final yet)"
        end = "" if self.until is None or not self.unit else f", up to {self.unit} {self.until}"
        size = format_bytes(self.bytes)
        return f"Export({str(self.path)!r}: {self.rows:,} rows{end}, {files}, {size}{gaps})"

    def _repr_html_(self) -> str:
        """Return the written tables and the missing rows, for a notebook."""
        files = f"{self.added + self.unchanged:,}, of which {self.added:,} are new"
        lines = [(name, f"{count:,} rows") for name, count in self.tables.items()]
        lines += [("files", files), ("size", format_bytes(self.bytes))]
        if self.until is not None and self.unit:
            lines.append(("up to", f"{self.unit} {self.until:,}"))
        reasons = Counter(str(gap.get("reason", "missing")) for gap in self.gaps)
        lines += [(f"gaps: {reason}", f"{count:,}") for reason, count in reasons.items()]
        lines += [] if self.gaps else [("gaps", "none")]
        return render_html(f"Export {self.path}", lines)
