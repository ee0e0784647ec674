"""Explanations of missing columns: similar names, and the loaders that return a column."""

from __future__ import annotations

import json
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

COLUMNS_FILE = Path(__file__).with_name("loader_columns.json")
"""The names of the columns of each loader; `make docs` generates it from the tables."""
MAX_NAMED = 5
"""Largest number of missing columns that a message names."""
MAX_LOADERS = 2
"""Largest number of loaders that a message names."""
MIN_COLUMNS = 3
"""Fewest columns by which the frame of a loader is recognized."""
_UNITS = ("_gwei", "_wei", "_eth")


@cache
def read_loader_columns() -> Mapping[str, list[str]]:
    """Return the names of the columns of each loader; none if they are not documented."""
    columns: dict[str, list[str]] = json.loads(COLUMNS_FILE.read_text(encoding="utf-8"))
    return columns


def find_loaders(column: str) -> list[str]:
    """Return the loaders whose frames have a *column*."""
    return [loader for loader, names in read_loader_columns().items() if column in names]


def explain_missing_columns(
    missing: Sequence[str], names: Collection[str], loader: str
) -> tuple[str, str]:
    """Return the message and the hint for the columns *missing* in a frame with columns *names*.

    *loader* returns the frames that the function takes, such as ``load_epochs``.
    """
    problem = f"the frame has no column {format_names(missing)}"
    required = read_loader_columns().get(loader, ["time"])
    chosen = next((name for name in missing if name not in required), None)
    if chosen is not None:
        return explain_unknown_column(problem, chosen, names)
    if others := recognize_frame(names):
        return (
            f"{problem}; it looks like a frame of {' or '.join(map(format_call, others))}",
            f"Pass a frame of {format_call(loader)}.",
        )
    hint = f"Pass a frame with all columns that {format_call(loader)} returns."
    if any(find_converted(name, names) for name in missing):
        return (
            problem,
            f"Pass the frame of {format_call(loader)} before bf.to_eth(...) converts it.",
        )
    if len(missing) > MAX_NAMED:  # A frame of something else: to rename one column cannot help.
        return problem, hint
    if renamed := get_close_matches(missing[0].lower(), [n.lower() for n in names], n=1):
        similar = next(name for name in names if name.lower() == renamed[0])
        if similar not in required:
            return (
                problem,
                f"Rename {similar!r} to {missing[0]!r}, or pass a frame of {format_call(loader)}.",
            )
    return problem, hint


def explain_unknown_column(
    problem: str, name: str, names: Iterable[str], format_loader: Callable[[str], str] | None = None
) -> tuple[str, str]:
    """Return the message and the hint for a column that the user has named."""
    columns = list(names)
    if similar := find_similar(name, columns):
        return f"{problem}; did you mean {similar!r}?", f"Columns: {', '.join(columns)}."
    meant = name
    if not find_loaders(name):
        known = {column for columns in read_loader_columns().values() for column in columns}
        meant = find_similar(name, sorted(known)) or ""
        problem += f"; did you mean {meant!r}?" if meant else ""
    loaders = find_loaders(meant)[:MAX_LOADERS]
    if not loaders:
        return problem, f"Columns: {', '.join(columns)}."
    listed = " and ".join(map(format_loader or format_call, loaders))
    return problem, f"{listed} {'returns' if len(loaders) == 1 else 'return'} {meant}."


def format_call(loader: str) -> str:
    """Return the call of a loader in Python."""
    return f"bf.{loader}(...)"


def format_command(loader: str) -> str:
    """Return the command of a loader: ``load v2.rewards`` for ``v2.load_rewards``."""
    return f"load {loader.replace('load_', '').replace('_', '-')}"


def recognize_frame(names: Collection[str]) -> list[str]:
    """Return the loaders whose columns are all in *names*, and at least half of them."""
    found: dict[tuple[str, ...], list[str]] = {}
    for loader, columns in read_loader_columns().items():
        is_most = len(columns) >= max(MIN_COLUMNS, len(names) / 2)
        if is_most and set(columns) <= set(names):
            found.setdefault(tuple(columns), []).append(loader)
    return found[max(found, key=len)] if found else []


def find_similar(name: str, names: Sequence[str]) -> str | None:
    """Return the name that is closest to *name*; None if none is close."""
    return next(iter(get_close_matches(name, names, n=1, cutoff=0.7)), None)


def find_converted(name: str, names: Collection[str]) -> bool:
    """Return whether *names* have the amount *name* in another unit."""
    stem = next((name.removesuffix(unit) for unit in _UNITS if name.endswith(unit)), None)
    return stem is not None and any(stem + unit in names for unit in _UNITS)


def format_names(names: Sequence[str]) -> str:
    """Return the first *names*, and the number of the others."""
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
