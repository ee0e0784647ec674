"""Words that engineers do not search for are absent from code, documents and help texts."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import click
import pytest

from beaconframes.cli import commands

ROOT = Path(__file__).resolve().parents[2]

WORDS = frozenset((
    "told", "tell", "tells", "telling", "nobody", "somebody", "anybody", "everybody", "whoever",
    "whomever", "whom", "lack", "lacks", "lacked", "lacking", "anew", "stranger", "strangers",
    "visitor", "visitors", "pacer", "shelf", "shelved", "mural", "spoilt",
))  # fmt: skip
PHRASES = ("generation 1", "generation 2", "asked for", "so long", "whose turn", "no moment")

REMAINING: dict[str, int] = {}
"""How many are left in each folder. The numbers may only shrink; a missing one is zero."""

# A word of a name or a sentence: told_of, isTold, TOLD and "Told" all hold "told".
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# Between two words of a phrase: also the quotes of two literals and the signs of two comments.
BETWEEN = r"[\s\"'#_]+"
PHRASE = re.compile("|".join(rf"\b{text.replace(' ', BETWEEN)}\b" for text in PHRASES))


def forbidden(text: str) -> list[str]:
    """Return the forbidden words and phrases of a text."""
    single = [word for word in map(str.lower, WORD.findall(text)) if word in WORDS]
    return single + [" ".join(re.findall(r"\w+", match)) for match in PHRASE.findall(text.lower())]


def cells(path: Path) -> str:
    """Return the sources of all cells of a notebook."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return "\n".join("".join(cell["source"]) for cell in notebook["cells"])


def files() -> list[tuple[str, Path]]:
    """Return every file that is checked, with the name it is counted under."""
    found = []
    package = ROOT / "src" / "beaconframes"
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).parts
        found.append((parts[0] if len(parts) > 1 else "beaconframes", path))
    found += [(path.name, path) for path in sorted(ROOT.glob("*.md"))]
    found += [("docs", path) for path in sorted((ROOT / "docs").rglob("*.md"))]
    found += [("notebooks", path) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    return found


def test_no_forbidden_word_is_new():
    """No folder holds more of these words than are known to be left."""
    found: Counter[str] = Counter()
    places: dict[str, list[str]] = {}
    for name, path in files():
        text = cells(path) if path.suffix == ".ipynb" else path.read_text(encoding="utf-8")
        if words := forbidden(text):
            found[name] += len(words)
            places.setdefault(name, []).append(f"{path.relative_to(ROOT)}: {', '.join(words)}")

    more = {name: places[name] for name, count in found.items() if count > REMAINING.get(name, 0)}
    assert {} == more, "replace these words by standard terms"


def helps(command: click.Command, context: click.Context) -> list[tuple[str, str]]:
    """Return the help text of a command and of all commands below it."""
    found = [(context.command_path, command.get_help(context))]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                found += helps(below, click.Context(below, info_name=name, parent=context))
    return found


def test_help_texts_hold_no_forbidden_word():
    """The same for what `--help` prints."""
    texts = helps(commands, click.Context(commands, info_name="beaconframes"))
    found = [(path, word) for path, text in texts for word in forbidden(text)]

    assert len(texts) > 10
    assert len(found) <= REMAINING.get("--help", 0), found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("As told above, nobody knows", ["told", "nobody"]),
        ("def told_rows(isTold, TOLD):", ["told", "told", "told"]),
        ("untold stories of shelves; retell", []),
        ('"rows asked "\n    "for here"', ["asked for"]),
        ("# rows that were asked\n# for by it", ["asked for"]),
        ("of Generation 2, generation 1", ["generation 2", "generation 1"]),
        ("wait so long", ["so long"]),
        ("also longer", []),
    ],
)
def test_words_are_found(text, expected):
    """Whole words, in names of any style, and phrases across lines; no parts of words."""
    assert expected == forbidden(text)
