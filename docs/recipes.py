"""Run the code of the recipes and put under each call what it gives.

`make docs` writes the page; a test holds it to what the calls give.
"""

from __future__ import annotations

import ast
import re
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

PAGE = Path(__file__).resolve().parent / "recipes.md"
SHOWN = 5
# A block of code, and the table that stands under it.
BLOCK = re.compile(
    r"""
    ```python\n(.*?)```\n
    (?: \n (?: \|[^\n]*\n )+ )?     # its table
    (?: \n \*[^\n]*\*\n )?         # how many rows there are
    """,
    re.DOTALL | re.VERBOSE,
)


def outcome(code: str, names: dict[str, Any]) -> Any:
    """Run *code*; return what its last line is, if that is an expression."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, PAGE.name, "exec"), names)  # noqa: S102 - our own page
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), PAGE.name, "eval"), names)  # noqa: S307


def table(frame: pl.DataFrame) -> str:
    """Return the first rows of *frame* as Markdown, and how many there are."""
    with pl.Config(
        tbl_formatting="MARKDOWN",
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        tbl_cols=-1,
        tbl_rows=SHOWN,
        tbl_width_chars=1_000,
        fmt_str_lengths=60,
        float_precision=6,
    ):
        text = str(frame.head(SHOWN))
    more = f"\n*{SHOWN} of {frame.height} rows*\n" if frame.height > SHOWN else ""
    return f"\n{text}\n{more}"


def filled(page: str) -> str:
    """Return *page* with what each of its calls gives, asked of whoever is connected."""
    names: dict[str, Any] = {}

    def with_outcome(block: re.Match[str]) -> str:
        found = outcome(block[1], names)
        return f"```python\n{block[1]}```\n" + ("" if found is None else table(found))

    return BLOCK.sub(with_outcome, page)


def main() -> None:
    """Write the page anew, over the chain that it names."""
    import beaconframes as bf
    from beaconframes.simulator import simulate

    with tempfile.TemporaryDirectory() as folder:
        chain = simulate(Path(folder) / "chain", validators=1010, epochs=470, seed=7)
        with bf.local(chain):
            PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote docs/{PAGE.name}")


if __name__ == "__main__":
    main()
