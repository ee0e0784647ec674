"""What errors call by its name in Python, by its name on the command line."""

from __future__ import annotations

import re

ARGUMENTS = {
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            "url", "chain", "rate", "store", "offline", "max_requests", "strict", "since", "until",
            "every", "slim", "region", "unit", "columns", "format", "table", "name",
            "wait", "by", "show", "top", "span", "late", "fps", "hold", "scale", "frames",
            "background",
        )
    },
    "for_": "--for",
    "api_key": "--key-file",
}  # fmt: skip
"""Arguments, and the options that they are."""

_PYTHON = r"\bbf\.[\w.]+\([^()]*\)"
_NAMED = re.compile(rf"{_PYTHON}|(?<![\w.(?&/-])({'|'.join(ARGUMENTS)})=(True\b)?(?=(\S?))")


def on_the_command_line(text: str) -> str:
    """Return *text* with options where it has arguments; a call in Python stays one."""

    def option(found: re.Match[str]) -> str:
        name, true, following = found.groups()
        if name is None:
            return found[0]
        return ARGUMENTS[name] + (" " if following and not true else "")

    return _NAMED.sub(option, text)
