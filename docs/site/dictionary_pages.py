"""The pages of the data dictionary: one for each table, and a list of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes import dictionary

if TYPE_CHECKING:
    from beaconframes.endpoint import Endpoint
    from beaconframes.schema import Column, Table

HEAD = """# Data dictionary

One page per table. Every loader returns a frame with exactly the columns of its table, in this
order, also without rows. Rows are sorted by the key (in bold), and every key is unique.

- The end of a column's name is its unit: `_gwei` is Int64, and `_wei` is Decimal with 28 digits. No
  amount passes through a float. Times are UTC.
- **null** marks the columns that may have no value: the service may have none, or may not send it.
  The meaning says what null stands for, where it stands for one thing.
- **on the wire** has the fields of the service. If a field has several spellings, all are accepted.

In a notebook, `bf.describe("income_history")` returns the same as a frame.
"""

WIDE = "---\nhtml_theme.sidebar_secondary.remove: true\n---\n\n"
"""The front matter of a page without a list of its headings: wide tables need the width."""

V1_TITLE, V2_TITLE = "Tables of V1", "Tables of V2"
INDEX_TITLE = "Tables of an index"


def build_pages() -> dict[str, str]:
    """Return all pages of the dictionary, by file."""
    v1, v2 = [], []
    pages = {}
    for name, endpoint in dictionary.ENDPOINTS_BY_NAME.items():
        (v2 if name.startswith("v2.") else v1).append((name, endpoint.table))
        pages[find_page(name)] = build_page(name, endpoint)
    index = [(table.table_name, table) for table in dictionary.find_index_tables()]
    pages |= {find_page(name): build_index_page(table) for name, table in index}
    of_index = dictionary.INDEX_HEAD.partition("\n\n")[2].replace("(own-node", "(../own-node")
    parts = [
        HEAD,
        build_list(V1_TITLE, v1),
        build_list(V2_TITLE, v2),
        build_list(INDEX_TITLE, index, of_index),
    ]
    return {"dictionary/index.md": "\n".join(parts), **pages}


def find_page(name: str) -> str:
    """Return the page of a table: ``dictionary/v2/rewards.md`` for ``v2.rewards``."""
    return f"dictionary/{name.replace('.', '/')}.md"


def build_list(title: str, tables: list[tuple[str, type[Table]]], text: str = "") -> str:
    """Return a list of tables with their rows, and their place in the navigation."""
    pages = [find_page(name).removeprefix("dictionary/").removesuffix(".md") for name, _ in tables]
    rows = "".join(
        f"| [`{name}`]({page}.md) | {dictionary.format_grain(table)} |\n"
        for (name, table), page in zip(tables, pages, strict=True)
    )
    entries = "\n".join(pages)
    return (
        f"## {title}\n\n{text}\n\n| table | rows |\n| --- | --- |\n{rows}\n"
        f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{entries}\n```\n"
    )


def build_page(name: str, endpoint: Endpoint) -> str:
    """Return the page of the table of an endpoint."""
    table = endpoint.table
    row = dictionary.summarize_loader(name, endpoint)
    routes = [endpoint.route]
    routes += [f"POST {endpoint.post.path}"] if endpoint.post else []
    routes += [f"{endpoint.method} {endpoint.alias}"] if endpoint.alias else []
    loader = f"beaconframes.{row['loader']}"
    facts = {
        "Loader": f"{{py:obj}}`{loader}`",
        "Call": f"`{dictionary.format_call(name)}`",
        "Endpoint": ", or ".join(f"`{route}`" for route in routes),
        "Key": ", ".join(f"`{column}`" for column in table.key()) or "none: one row",
        "Final": endpoint.finality.value,
        "One request": ", ".join(
            f"{row[limit]:,} {words}"
            for limit, words in (
                ("subjects_per_request", "subjects at most"),
                ("units_per_request", f"{row.get('unit')}s at most"),
                ("rows_per_page", "rows per page"),
            )
            if row.get(limit)
        ),
    }
    lines = "".join(f":{title}: {text}\n" for title, text in facts.items() if text)
    head = f"{WIDE}# {name}\n\n{dictionary.format_grain(table)}\n"
    return f"{head}\n{lines}\n{build_columns(table)}"


def build_index_page(table: type[Table]) -> str:
    """Return the page of a table of an index, which has no loader."""
    name = table.table_name
    return (
        f"{WIDE}# {name}\n\n{dictionary.format_grain(table)}\n\n"
        f'`bf.index` writes this table. `bf.Dataset.open(...).scan("{name}")` reads it.\n\n'
        f":Key: {', '.join(f'`{column}`' for column in table.key())}\n\n"
        f"{build_columns(table, has_wire=False)}"
    )


def build_columns(table: type[Table], *, has_wire: bool = True) -> str:
    """Return the table of columns."""
    titles = ["column", "type", "unit", "null", "meaning", *(["on the wire"] if has_wire else [])]
    lines = [
        "## Columns",
        "",
        "::::{div} columns",
        "",
        f"| {' | '.join(titles)} |",
        f"| {' | '.join('---' for _ in titles)} |",
    ]
    rows = zip(table.columns, table.describe().iter_rows(named=True), strict=True)
    for column, row in rows:
        name = f"**`{row['column']}`**" if row["key"] else f"`{row['column']}`"
        cells = [name, row["type"], row["unit"], "yes" if is_nullable(column) else ""]
        cells += [row["meaning"], *([format_wire(row["wire"])] if has_wire else [])]
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join([*lines, "::::", ""])


def is_nullable(column: Column) -> bool:
    """Return whether a frame may have no value in a column."""
    return not column.key and (column.nullable or column.optional)


def format_wire(wire: str) -> str:
    """Return the fields on the wire as code, and the words for their absence as text."""
    if wire in {"derived", "request", "list position"}:
        return wire
    return ", ".join(f"`{path}`" for path in wire.split(", "))
