"""Fields of a record that have no column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection


def split_fields(
    record: dict[str, Any], paths: Collection[str], prefix: str = ""
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields of *record* that are at one of the *paths* of columns, and the others."""
    with_column: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name, value in record.items():
        path = f"{prefix}{name}"
        if path in paths and not isinstance(value, dict):
            with_column[name] = value
        elif isinstance(value, dict | None) and any(p.startswith(f"{path}.") for p in paths):
            # An object whose fields are all null may be null.
            inner, others = split_fields(value or {}, paths, f"{path}.")
            with_column |= {name: inner} if inner else {}
            rest |= {name: others} if others else {}
        else:
            rest[name] = value
    return with_column, rest
