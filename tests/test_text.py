"""Graffiti and names are untrusted: every output shows them as inert text."""

import html
import io
import json
import re
import unicodedata
import warnings
from datetime import UTC, datetime
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import matplotlib as mpl

mpl.use("Agg")

import polars as pl
import pytest
from click.testing import CliRunner
from matplotlib import pyplot as plt
from PIL import Image
from plotly import graph_objects as go

import beaconframes as bf
from beaconframes import errors, interactive, plot, text, wall
from beaconframes.cli import commands

from .support.cases import every
from .support.untrusted_texts import GRAFFITI, NAMES, TEXTS

WORDS = [f"word {number}" for number in range(len(TEXTS))]

NINES = [TEXTS[start : start + 9] for start in range(0, len(TEXTS), 9)]  # As many as a legend has.

each_nine = pytest.mark.parametrize("texts", NINES, ids=range(len(NINES)))
each_third_nine = pytest.mark.parametrize("texts", every(3, NINES), ids=range(len(NINES)))
each_text = pytest.mark.parametrize("malicious", TEXTS, ids=range(len(TEXTS)))


class Outline(HTMLParser):
    """The tags of an HTML page with their attributes, and its text."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts = [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(attrs)))

    def handle_comment(self, data):
        self.tags.append(("comment", data))

    def handle_decl(self, decl):
        self.tags.append(("declaration", decl))

    def handle_pi(self, data):
        self.tags.append(("instruction", data))

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def frame_of(texts):
    return pl.DataFrame(
        {"slot": range(len(texts)), "graffiti_text": texts}, schema_overrides={"slot": pl.Int64}
    )


def wall_of(texts):
    """A wall and groups of one validator, with the texts as names of the groups."""
    count = len(texts)
    frame = pl.DataFrame(
        {
            "slot": range(count),
            "x": range(count),
            "y": [0] * count,
            "time": [datetime(2026, 10, 1, tzinfo=UTC)] * count,
            "color": ["abcdef"] * count,
            "validator_index": range(count),
        },
    )
    return frame, {name: [index] for index, name in enumerate(texts)}


def is_safe(shown):
    """Whether a text has no control, direction or invisible characters; line ends are allowed."""
    categories = {unicodedata.category(character) for character in shown.replace("\n", "")}
    return not categories & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def drawn_by_plotly(label):
    """What plotly draws for a label: it decodes entities; there must be no tags or templates."""
    outline = Outline(label)
    assert [] == outline.tags
    assert not re.search(r"\$|%\{", label)
    return "".join(outline.texts)


def test_there_are_75_untrusted_texts():
    """32 of the size of graffiti, and 43 names; all different."""
    assert (32, 43) == (len(GRAFFITI), len(NAMES))
    assert max(len(graffiti.encode()) for graffiti in GRAFFITI) <= 32
    assert 75 == len(set(TEXTS))


@each_text
def test_visible_text_is_one_line_of_visible_characters(malicious):
    """X06: control, direction and invisible characters are escaped; plain text is unchanged."""
    shown = text.visible(malicious)

    assert is_safe(shown)
    assert 1 == len(shown.splitlines())
    assert not re.search("[\u3164\ufe00-\ufe0f\U000e0100-\U000e01ef]|\u0301{3}", shown)
    if malicious.isascii() and malicious.isprintable():
        assert malicious == shown


def test_visible_text_contains_escapes():
    """The escapes are those of Python literals."""
    assert r"a\x1b[2Jb" == text.visible("a\x1b[2Jb")
    assert r"x\u202ey\n\x00" == text.visible("x\u202ey\n\0")
    assert r"\U000e0041\ud800" == text.visible("\U000e0041\ud800")
    assert "é ☕ 灯台 🗼" == text.visible("é ☕ 灯台 🗼")


@each_text
def test_cut_text_has_at_most_the_given_length(malicious):
    """The ellipsis is included, and no escape is cut in two."""
    whole = text.visible(malicious)
    for most in (1, 2, 5, 30):
        shown = text.visible(malicious, most)

        assert len(shown) <= most
        if len(whole) > most:
            assert shown.endswith("…")
            assert whole.startswith(shown[:-1])
            assert not re.search(r"\\(x.?|u.{0,3}|U.{0,7})…$", shown) or "\\" in malicious


@pytest.mark.parametrize(
    "table",
    [
        lambda frame: frame._repr_html_(),
        lambda frame: bf.to_pandas(frame)._repr_html_(),
        lambda frame: bf.printable(frame)._repr_html_(),
        lambda frame: bf.printable(bf.to_pandas(frame))._repr_html_(),
    ],
    ids=["polars", "pandas", "printable", "printable pandas"],
)
def test_tables_in_notebooks_have_no_tags_from_texts(table):
    """X01: the tags of the table are the same for plain words and for malicious texts."""
    with pl.Config(tbl_rows=100, fmt_str_lengths=10**6):
        assert Outline(table(frame_of(WORDS))).tags == Outline(table(frame_of(TEXTS))).tags


def test_printable_frames_are_safe_in_a_terminal():
    """One row is one line, as wide as its box; what polars prints without it is not safe."""
    with pl.Config(tbl_rows=100, fmt_str_lengths=200, tbl_width_chars=-1):
        assert not is_safe(str(frame_of(TEXTS)))
        shown = str(bf.printable(frame_of(TEXTS)))

    assert is_safe(shown)
    rows = [line for line in shown.split("\n") if line.startswith("│")]
    assert 3 + 75 == len(rows)
    assert {"│"} == {line[-1] for line in rows}
    assert is_safe(str(bf.printable(bf.to_pandas(frame_of(TEXTS)))))


def test_printable_frames_change_texts_only():
    """Numbers, nulls, plain text and the kind of frame stay; the argument is not changed."""
    frame = frame_of([*TEXTS, None, "plain"])

    shown = bf.printable(frame)

    assert [text.visible(t) for t in TEXTS] + [None, "plain"] == shown["graffiti_text"].to_list()
    assert frame.schema == shown.schema
    assert frame["slot"].equals(shown["slot"])
    assert shown.equals(bf.printable(frame.lazy()).collect())
    assert [*TEXTS, None, "plain"] == frame["graffiti_text"].to_list()


def test_files_contain_texts_unchanged():
    """X04: Parquet and JSON have every byte of a text."""
    frame = frame_of(TEXTS)
    stored = io.BytesIO()
    frame.write_parquet(stored)
    stored.seek(0)

    assert frame.equals(pl.read_parquet(stored))
    assert TEXTS == [row["graffiti_text"] for row in json.loads(frame.write_json())]


def svg(figure):
    """The tags of a figure, and its texts."""
    file = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg")
    root = ET.fromstring(file.getvalue())
    elements = [(element.tag.rpartition("}")[2], element) for element in root.iter()]
    texts = {"".join(element.itertext()) for tag, element in elements if tag == "text"}
    return [tag for tag, _ in elements], texts


@pytest.mark.more
@each_third_nine
def test_legends_of_static_charts_have_text_only(texts):
    """All names of groups are drawn, without formulas or tags."""
    frame, groups = wall_of(texts)

    axes = plot.wall(frame, show="territory", groups=groups, region=(0, 0, 9, 0))

    shown = axes.get_legend().get_texts()
    expected = {f"{text.for_matplotlib(name)}: 1" for name in groups}
    assert expected == {label.get_text() for label in shown}
    assert all(is_safe(label.get_text()) for label in shown)
    tags, read = svg(axes.get_figure())
    assert not {"a", "script", "foreignObject"} & set(tags)
    drawn = [label.get_text().replace(r"\$", "$") for label in shown]
    assert set() == {" ".join(d.split()) for d in drawn} - {" ".join(r.split()) for r in read}


@each_third_nine
def test_labels_of_static_charts_have_text_only(texts):
    """X02: matplotlib finds no formula in title, axes, ticks and annotations."""
    labels = [text.for_matplotlib(malicious) for malicious in texts]
    figure, axes = plt.subplots(figsize=(3, 2), dpi=50)
    axes.set_title(labels[0])
    axes.set_xlabel(labels[1])
    axes.set_ylabel(labels[2])
    axes.set_xticks(range(len(labels)), labels)
    notes = [axes.annotate(label, (0.5, 0.5)) for label in labels]
    lines = [axes.plot([0, 1], label=label)[0] for label in labels]
    axes.legend()

    figure.canvas.draw()

    assert labels == [t.get_text() for t in axes.get_legend().get_texts()]
    assert labels == [line.get_label() for line in lines]
    for note, label in zip(notes, labels, strict=True):
        assert is_safe(label)
        assert (label.replace(r"\$", "$"), False) == note._preprocess_math(label)


@pytest.mark.more
@each_third_nine
def test_interactive_walls_have_text_only(texts):
    """Names of groups in the legend, in hover text and in the saved page."""
    frame, groups = wall_of(texts)
    plain_frame, words = wall_of(WORDS[: len(texts)])

    figure = interactive.wall(frame, show="territory", groups=groups, region=(0, 0, 9, 0))

    names = {f"{text.visible(name, text.LABEL)}: 1" for name in texts}
    drawn, *in_legend = figure.data
    assert names == {drawn_by_plotly(trace.name) for trace in in_legend}
    assert names == {drawn_by_plotly(label) for label in drawn.text.ravel() if label}
    other = interactive.wall(plain_frame, show="territory", groups=words, region=(0, 0, 9, 0))
    pages = [
        f.to_html(div_id="wall", include_plotlyjs=False, full_html=True) for f in (figure, other)
    ]
    assert Outline(pages[1]).tags == Outline(pages[0]).tags


@each_text
def test_labels_of_figures_have_text_only(malicious):
    """X02: plotly finds neither tags nor formulas in titles, axes, legends, annotations, hover
    text.
    """
    label, word = text.for_plotly(malicious), "word"

    def page(words):
        figure = go.Figure(
            go.Scatter(x=[1], y=[1], name=words, text=[words], customdata=[words]),
            {"title": words, "xaxis": {"title": words, "tickvals": [1], "ticktext": [words]}},
        )
        figure.update_traces(hovertemplate=f"%{{customdata}} {words}<extra></extra>")
        figure.add_annotation(text=words)
        return figure.to_html(div_id="chart", include_plotlyjs=False)

    assert text.visible(malicious, text.LABEL) == drawn_by_plotly(label)
    assert len(html.unescape(label)) <= text.LABEL
    assert Outline(page(word)).tags == Outline(page(label)).tags


@pytest.mark.long
def test_exported_notebooks_have_text_only():
    """X05: the page of nbconvert has the same tags for plain words and for malicious texts."""
    # Imported here, because the import takes seconds.
    import nbformat
    from nbconvert import HTMLExporter

    def page(texts):
        frame = frame_of(texts)
        shown = [bf.printable(frame), frame, bf.to_pandas(frame)]
        outputs = [
            nbformat.v4.new_output("display_data", {"text/html": table._repr_html_()})
            for table in shown
        ]
        outputs.append(nbformat.v4.new_output("stream", text=str(bf.printable(frame))))
        outputs += [
            nbformat.v4.new_output("stream", name="stderr", text=str(errors.UsageError(word)))
            for word in texts
        ]
        notebook = nbformat.v4.new_notebook()
        notebook.cells.append(nbformat.v4.new_code_cell("frame", outputs=outputs, id="cell"))
        notebook.cells[0].execution_count = 1
        with warnings.catch_warnings():
            # The templates of nbconvert warn.
            warnings.simplefilter("ignore")
            return Outline(HTMLExporter().from_notebook_node(notebook)[0])

    with pl.Config(tbl_rows=100, fmt_str_lengths=200):
        assert page(WORDS).tags == page(TEXTS).tags


@each_text
def test_errors_are_is_safe(malicious):
    """A message that quotes a text is one line of visible characters."""
    for error in (
        errors.UsageError(f"no {malicious}", hint=malicious),
        errors.ServerError(malicious, endpoint="names", attempts=3),
        errors.MissingRows(malicious),
    ):
        assert is_safe(str(error))
        assert 1 == len(str(error).splitlines())


@each_text
def test_the_command_is_is_safe(malicious):
    """The error of an unknown loader quotes its name as visible characters."""
    result = CliRunner().invoke(commands, ["dictionary", "--", malicious])

    assert 2 == result.exit_code
    assert is_safe(result.output)


@each_nine
def test_metadata_of_pictures_is_safe(texts, tmp_path):
    """The name of the chain is one line of visible characters."""
    frame, _ = wall_of(["one", "two"])

    chain = " ".join(texts)
    still = wall.save(frame, tmp_path / "a.png", region=(0, 0, 3, 3), chain=chain)
    moving = wall.timelapse(frame, tmp_path / "a.gif", region=(0, 0, 3, 3), chain=chain)

    with Image.open(still) as image:
        assert is_safe(image.text["Chain"])
        assert 1 == len(image.text["Chain"].splitlines())
    with Image.open(moving) as image:
        assert is_safe(image.info["comment"].decode())
