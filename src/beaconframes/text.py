"""Text from the chain, escaped for display: graffiti, names and tags are untrusted input.

Frames and data files contain every text unchanged. Only the functions of this module escape it:

=================  ==============================================================================
terminal, message  ``visible``: no control characters, no text direction, nothing invisible
plotly             ``for_plotly``: also no links, tags, formulas or templates
matplotlib         ``for_matplotlib``: also no formulas, no characters that the font does not have
=================  ==============================================================================
"""

from __future__ import annotations

import re
import unicodedata

LABEL = 60
"""Largest number of characters in a label."""

# str.isprintable() is true for these characters, but they are invisible.
_BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
_INVISIBLE = re.compile(f"[{_BLANK}\U000e0100-\U000e01ef]")
_MARKS = 2  # Accents on one letter: more of them would cover the lines above.


def visible(text: object, most: int | None = None) -> str:
    r"""Return *text* on one line of visible characters; all others become escapes, ``\u202e``.

    A text of more than *most* characters is cut, and ends with an ellipsis.
    """
    whole = str(text)
    if len(whole) <= (most or len(whole)) and whole.isascii() and whole.isprintable():
        return whole
    shown: list[str] = []
    length = marks = 0
    for character in whole:
        marks = marks + 1 if unicodedata.combining(character) else 0
        hidden = not character.isprintable() or marks > _MARKS or _INVISIBLE.match(character)
        piece = character.encode("unicode_escape").decode() if hidden else character
        shown.append(piece)
        length += len(piece)
        if most is not None and length > most:
            while length > most - 1:
                length -= len(shown.pop())
            shown.append("…")
            break
    return "".join(shown)


def shorten(value: object) -> str:
    """Return the ``repr`` of *value* for a message, cut after 80 characters.

    An object whose ``repr`` has several lines, such as a frame, has its type instead.
    """
    text = repr(value)
    if "\n" in text:
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:80]}..."


def type_name(dtype: object) -> str:
    """Return the name of a polars type in data dictionaries, such as ``Datetime(us, UTC)``."""
    return re.sub(r"\w+=|'", "", str(dtype))


def for_plotly(text: object, most: int = LABEL) -> str:
    """Escape *text* for a title, label, legend or hover text of plotly, which parses tags."""
    safe = visible(text, most)
    # The ampersand comes first: plotly decodes the entities of the others when it draws.
    for character, entity in {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        "$": "&#36;",
        "%": "&#37;",
    }.items():
        safe = safe.replace(character, entity)
    return safe


def for_matplotlib(text: object, most: int = LABEL) -> str:
    """Escape *text* for a title, label or legend of matplotlib, which parses formulas.

    Characters that the font does not have become escapes: matplotlib would draw empty boxes.
    """
    from matplotlib import font_manager

    font = font_manager.get_font(font_manager.findfont(font_manager.FontProperties()))
    drawn = "".join(
        c if font.get_char_index(ord(c)) else c.encode("unicode_escape").decode()
        for c in visible(text, most)
    )
    # Legends omit labels that start with an underscore.
    return (" " if drawn.startswith("_") else "") + drawn.replace("$", r"\$")
