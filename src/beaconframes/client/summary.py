"""The printed form of plans and quotas: one line for each figure."""

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
