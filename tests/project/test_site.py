"""The sources of the documentation site: every public name, table and chart has its page."""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path

import pytest

import beaconframes as bf
from beaconframes import dictionary

SITE = Path(__file__).resolve().parents[2] / "docs" / "site"


@pytest.fixture(scope="module")
def build():
    """The script that collects the sources of the site."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SITE)
        import build

        yield build
    for module in SITE.glob("*.py"):
        sys.modules.pop(module.stem, None)


def public_names():
    """Every public name, by the module that has it."""
    names = [f"beaconframes.{name}" for name in bf.__all__]
    for module in (bf.v2, bf.analysis, bf.plot, bf.interactive, bf.wall):
        names += [f"{module.__name__}.{name}" for name in module.__all__]
    names += [
        f"{value.__module__}.{name}"
        for name, value in vars(bf.errors).items()
        if inspect.isclass(value) and issubclass(value, bf.BeaconframesError)
    ]
    return names


def test_every_public_name_has_a_page(build):
    """The list of names is `__init__.pyi`; a module has a page with its names."""
    pages = build.api_pages.build_pages()

    # An error that the package has too is one object with one page.
    names = [
        name if name.rpartition(".")[2] not in bf.__all__ else name.replace("errors.", "")
        for name in public_names()
    ]
    assert len(names) > 200
    assert [] == [name for name in names if f"api/{name}.rst" not in pages]
    for name in ("load_income_history", "v2.load_rewards", "plot.income", "MAINNET"):
        module, _, short = f"beaconframes.{name}".rpartition(".")
        assert f".. py:currentmodule:: {module}\n" in pages[f"api/beaconframes.{name}.rst"]
        assert f":: {short}\n" in pages[f"api/beaconframes.{name}.rst"]


def test_names_are_in_the_groups_of_the_stub(build):
    """A comment of the stub is the title of the names below it."""
    groups = {group.title: group.names for group in build.api_pages.read_groups()}

    assert "load_validators" == groups["Load validators"][0].short
    assert "load_yield_index" in [name.short for name in groups["Load the chain"]]
    assert "errors.RateLimited" in [name.short for name in groups["bf.errors"]]
    assert [] == [name.full for names in groups.values() for name in names if not read(build, name)]


def read(build, name):
    return build.api_pages.read_summary(name)


def test_every_table_has_a_page_with_its_columns(build):
    """A page has the loader, the key, and one line per column with type, unit and null."""
    pages = build.dictionary_pages.build_pages()

    for name, endpoint in dictionary.ENDPOINTS_BY_NAME.items():
        page = pages[f"dictionary/{name.replace('.', '/')}.md"]
        assert f"beaconframes.{dictionary.format_loader_name(name)}" in page
        for column in endpoint.table.columns:
            assert f"`{column.name}`" in page
    income = pages["dictionary/income_history.md"]
    assert ":Key: `validator_index`, `epoch`\n" in income
    assert "| **`epoch`** | Int64 | epoch |  | Epoch of the duties. | `epoch` |\n" in income
    assert "| `tx_fee_reward_wei` | Decimal(28, 0) | wei | yes | Priority fees" in income
    assert "(slot_income.md)" in pages["dictionary/index.md"]


def test_programs_read_the_pages_as_markdown(build):
    """llms.txt names each loader and each page of the guide, with the file of its Markdown."""
    files = build.read_sources()
    pages = build.build_plain_pages(files)
    listed = re.findall(r"^- \[(.+)\]\((.+)\): (\S.*)$", pages["llms.txt"], re.MULTILINE)

    assert {*pages} - {"llms.txt"} == {name for _, name, _ in listed}
    assert dictionary.ENDPOINTS_BY_NAME.keys() <= {title for title, _, _ in listed}
    assert all(pages[name] == files[name] for _, name, _ in listed)
    assert {f"guide/{path.name}" for path in (SITE.parent / "guide").glob("*.md")} < pages.keys()


ADDRESSES = {
    "Documentation": "https://example.org/bf",
    "Repository": "https://github.com/example/bf",
}


def test_versions_and_links_to_other_services_need_the_addresses_of_the_project(build):
    """Before the first release there are none, and the site has neither."""
    links = build.addresses
    path, tag = "notebooks/01_validator_income.ipynb", "v9.8.7"
    elsewhere = ADDRESSES | {"Repository": "https://git.example.org/example/bf"}

    assert links.build_switcher({}) is None
    assert {} == links.build_versions({}, [tag])
    assert "" == links.build_launch_links({}, path, tag)
    assert "" == links.build_launch_links(elsewhere, path, tag)
    found = links.build_launch_links(ADDRESSES, path, tag)
    assert f"(https://mybinder.org/v2/gh/example/bf/{tag}?urlpath=lab/tree/{path})" in found
    assert f"(https://colab.research.google.com/github/example/bf/blob/{tag}/{path})" in found


def test_notebooks_of_the_site_can_be_run_elsewhere(build, monkeypatch):
    """The links are below the introduction; without addresses, it is as in the repository."""
    name = "notebooks/01_validator_income.ipynb"
    plain = json.loads(build.read_notebooks()[name])["cells"][0]["source"]
    monkeypatch.setattr(build.addresses, "read_urls", lambda: ADDRESSES)

    linked = json.loads(build.read_notebooks()[name])["cells"][0]["source"]

    assert "://" not in plain
    assert linked.startswith(plain)
    assert f"/v{bf.__version__}?urlpath=lab/tree/{name})" in linked


@pytest.mark.parametrize(("tags", "version"), [(["v9.8.7"], "v9.8.7"), ([], "main")])
def test_every_version_of_the_site_reads_one_list(build, tags, version, monkeypatch):
    """The site of a release has the name of its tag; the file lists it with its folder."""
    links = build.addresses
    monkeypatch.setattr(links, "list_tags", lambda *options: tags)
    (name, text), *_ = links.build_versions(ADDRESSES, ["v9.8.7"]).items()
    listed = {row["version"]: row["url"] for row in json.loads(text)}

    switcher = links.build_switcher(ADDRESSES)

    assert switcher == {
        "json_url": f"https://example.org/bf/{name}",
        "version_match": version,
    }
    assert {"main": "https://example.org/bf/", "v9.8.7": "https://example.org/bf/v9.8.7/"} == listed
    assert version in listed


def test_every_chart_has_its_picture_its_figure_and_its_code(build):
    """Each script of the gallery is in one page and in the list of all charts."""
    gallery = build.gallery_pages
    pages = gallery.build_pages()

    text = "".join(page for page in pages.values() if isinstance(page, str))
    for script in gallery.make.scripts():
        assert 1 == text.count(f"({script.stem})=\n")
        assert 1 == text.count(f":link: {script.stem}\n")
        assert gallery.make.read_code(script) in text
        assert gallery.is_interactive(script) == (f'data-figure="{script.stem}"' in text)
    assert not gallery.is_interactive(gallery.GALLERY / "wall_timelapse.py")


@pytest.mark.parametrize(
    ("link", "moved"),
    [
        ("[a](times.md)", "[a](times.md)"),
        ("[a](../dictionary.md#all)", "[a](../dictionary/index.md#all)"),
        ("[a](../../notebooks/05_a_cluster.ipynb)", "[a](../notebooks/05_a_cluster.ipynb)"),
        ("[a](../../data/README.md)", "[a](../sample.md)"),
        ("![a](../gallery/wall.png)", "![a](../gallery/wall.png)"),
        (
            "[a](#below) and [b](https://x.example/y.md)",
            "[a](#below) and [b](https://x.example/y.md)",
        ),
    ],
)
def test_links_between_files_become_links_between_pages(build, link, moved):
    """A page of the repository links to files; on the site they have another place."""
    assert moved == build.move_links(link, "docs/guide/units.md")


def test_signatures_have_types_without_aliases(build):
    """The types of all overloads together; a choice lists its values."""
    import signatures

    loader, result = signatures.build_signature(bf.load_income_history)
    chart, axes = signatures.build_signature(bf.plot.income)
    method, quota = signatures.build_signature(bf.Explorer.read_quota)

    assert "since: int | str | ~datetime.date | ~datetime.datetime" in loader
    assert "frame: Literal['polars', 'pandas'] | None = None" in loader
    assert "polars.DataFrame | polars.LazyFrame | pandas.DataFrame" == result
    assert "unit: ~typing.Literal['eth', 'gwei', 'wei'] | None = None" in chart
    assert "Axes" == axes
    assert ("()", "Quota") == (method, quota)
    # A class returns no value, and its instance is no argument.
    assert signatures.build_signature(bf.Explorer)[0].startswith("(url: str | None = None, *")
    assert not signatures.build_signature(bf.Explorer)[1]


@pytest.mark.parametrize(
    ("code", "page", "name"),
    [
        ("bf.load_income_history([1], since=-3)", "", "load_income_history"),
        ("load_slots", "", "load_slots"),
        ("bf.analysis", "", "analysis"),
        ("income(income, by=...)", "guide/charts", "plot.income"),
        ("load_validators", "guide/v1-or-v2", "v2.load_validators"),
        ("income", "", None),
        ("bf.unknown()", "", None),
        ("strict=True", "", None),
    ],
)
def test_code_in_pages_links_to_public_names(build, code, page, name):
    """A call links to its function; names without a module only in the tables of their page."""
    import page_marks

    found = page_marks.find_name(code, page_marks.FIRST_COLUMNS.get(page, ()))

    assert found == (name and f"beaconframes.{name}")


def test_long_messages_are_wrapped_and_tables_are_not(build):
    """A warning is wrapped on a narrow page; columns of text keep their lines."""
    import page_marks
    from docutils import nodes

    texts = ["MissingRows: 1 of 2 validators have no rows", "│ epoch │", "net income   0.1 ETH"]
    blocks = [nodes.literal_block(text, text, language="text") for text in texts]
    doctree = nodes.section("", *blocks)

    page_marks.mark_messages(doctree)

    assert [["message"], [], []] == [block["classes"] for block in blocks]
