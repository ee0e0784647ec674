"""The printed form of explorers, datasets, plans and quotas: one line for each figure."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    Lines = Sequence[tuple[str, str]]


def render_text(caption: str, lines: Lines) -> str:
    """Return *lines* as text for a terminal."""
    width = max(len(name) for name, _ in lines)
    return "\n".join([f"{caption}:", *(f"  {name:<{width}}  {text}" for name, text in lines)])


def render_html(caption: str, lines: Lines) -> str:
    """Return *lines* as a table for a notebook."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in lines
    )
    return f"<table><caption>{escape(caption)}</caption>{rows}</table>"


def format_bytes(count: float) -> str:
    """Return a number of bytes as text, rounded to three digits."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB"
