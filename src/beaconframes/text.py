"""Text from a chain, made safe to look at: anybody may write graffiti, names and tags.

Frames and data files keep every text as it is. What shows text makes it safe for the place where it
is shown, here and nowhere else:

=================  ==============================================================================
terminal, message  ``visible``: nothing moves the cursor, turns the writing or hides
plotly             ``for_plotly``: also no link, no tag, no formula, no template
matplotlib         ``for_matplotlib``: also no formula, and no character that the font lacks
=================  ==============================================================================
"""

from __future__ import annotations

import re
import unicodedata

LABEL = 60
"""Characters of a label: more would push the chart aside."""

# Python calls these printable, and yet nothing is to be seen.
_BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
_INVISIBLE = re.compile(f"[{_BLANK}\U000e0100-\U000e01ef]")
_MARKS = 2  # Accents on one letter; a tower of them would cover the lines above.


def visible(text: object, most: int | None = None) -> str:
    r"""Write *text* on one line of characters that can be seen; the others become ``\u202e``.

    *most* is the number of characters from which on the rest is cut off, with an ellipsis.
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


def for_plotly(text: object, most: int = LABEL) -> str:
    """Write *text* for a title, label, legend or hover text of plotly, which reads tags in it."""
    safe = visible(text, most)
    # The ampersand first: the others become entities, which plotly turns back when it draws.
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
    """Write *text* for a title, label or legend of matplotlib, which reads formulas in it.

    Characters that the font in use lacks become escapes, where matplotlib would draw empty boxes.
    """
    from matplotlib import font_manager

    font = font_manager.get_font(font_manager.findfont(font_manager.FontProperties()))
    drawn = "".join(
        c if font.get_char_index(ord(c)) else c.encode("unicode_escape").decode()
        for c in visible(text, most)
    )
    # Legends leave out what begins with an underscore.
    return (" " if drawn.startswith("_") else "") + drawn.replace("$", r"\$")
