"""Generate the results in docs/recipes.md: run the code of each recipe and insert its table.

`make docs` writes the page, and a test checks that it is up to date.
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
# A block of code and the table below it.
BLOCK = re.compile(
    r"""
    ```python\n(.*?)```\n
    (?: \n (?: \|[^\n]*\n )+ )?     # its table
    (?: \n \*[^\n]*\*\n )?         # the number of rows
    """,
    re.DOTALL | re.VERBOSE,
)


def run_code(code: str, names: dict[str, Any]) -> Any:
    """Run *code*; return the value of its last line if this is an expression."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, PAGE.name, "exec"), names)  # noqa: S102 - our own page
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), PAGE.name, "eval"), names)  # noqa: S307


def format_table(frame: pl.DataFrame) -> str:
    """Return the first rows of *frame* as Markdown, and the number of rows."""
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


def fill_page(page: str) -> str:
    """Return *page* with the result of each call, loaded from the current explorer."""
    names: dict[str, Any] = {}

    def add_result(block: re.Match[str]) -> str:
        result = run_code(block[1], names)
        return f"```python\n{block[1]}```\n" + ("" if result is None else format_table(result))

    return BLOCK.sub(add_result, page)


def main() -> None:
    """Write the page with the results of its simulated chain."""
    import beaconframes as bf
    from beaconframes.simulator import simulate

    with tempfile.TemporaryDirectory() as folder:
        chain = simulate(Path(folder) / "chain", validators=1010, epochs=470, seed=7)
        with bf.local(chain):
            PAGE.write_text(fill_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote docs/{PAGE.name}")


if __name__ == "__main__":
    main()
