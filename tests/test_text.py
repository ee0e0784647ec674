"""Anybody may write graffiti and names. Nothing of it is alive, wherever it is shown."""

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

from .support.hostile import GRAFFITI, NAMES, TEXTS

WORDS = [f"word {number}" for number in range(len(TEXTS))]

NINES = [TEXTS[start : start + 9] for start in range(0, len(TEXTS), 9)]  # As a legend names.

each_nine = pytest.mark.parametrize("texts", NINES, ids=range(len(NINES)))
each_text = pytest.mark.parametrize("hostile", TEXTS, ids=range(len(TEXTS)))


class Outline(HTMLParser):
    """What a parser of HTML finds: every tag with its attributes, and what is to be read."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.read = [], []
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
        self.read.append(data)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def frame_of(texts):
    return pl.DataFrame(
        {"slot": range(len(texts)), "graffiti_text": texts}, schema_overrides={"slot": pl.Int64}
    )


def wall_of(texts):
    """A wall on which every text names a group of one validator, and the groups."""
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


def calm(shown):
    """Whether nothing in a text moves a cursor, hides or turns the writing; lines may end."""
    categories = {unicodedata.category(character) for character in shown.replace("\n", "")}
    return not categories & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def unplotly(label):
    """What plotly draws for a label: it knows tags and entities, and nothing else is left."""
    outline = Outline(label)
    assert [] == outline.tags
    assert not re.search(r"\$|%\{", label)
    return "".join(outline.read)


def test_there_are_75_texts():
    """32 that fit into graffiti, and 43 names; all different."""
    assert (32, 43) == (len(GRAFFITI), len(NAMES))
    assert max(len(graffiti.encode()) for graffiti in GRAFFITI) <= 32
    assert 75 == len(set(TEXTS))


@each_text
def test_visible_text_is_one_line_of_what_can_be_seen(hostile):
    """No control, no direction, no blank, no tower of accents; words stay what they are."""
    shown = text.visible(hostile)

    assert calm(shown)
    assert 1 == len(shown.splitlines())
    assert not re.search("[\u3164\ufe00-\ufe0f\U000e0100-\U000e01ef]|\u0301{3}", shown)
    if hostile.isascii() and hostile.isprintable():
        assert hostile == shown


def test_visible_text_says_what_it_hides():
    """Escapes are those of Python's own literals, so that nobody has to guess."""
    assert r"a\x1b[2Jb" == text.visible("a\x1b[2Jb")
    assert r"x\u202ey\n\x00" == text.visible("x\u202ey\n\0")
    assert r"\U000e0041\ud800" == text.visible("\U000e0041\ud800")
    assert "é ☕ 灯台 🗼" == text.visible("é ☕ 灯台 🗼")


@each_text
def test_cut_text_is_no_longer_than_said(hostile):
    """Neither an escape nor the ellipsis goes beyond, and no escape is cut in two."""
    whole = text.visible(hostile)
    for most in (1, 2, 5, 30):
        shown = text.visible(hostile, most)

        assert len(shown) <= most
        if len(whole) > most:
            assert shown.endswith("…")
            assert whole.startswith(shown[:-1])
            assert not re.search(r"\\(x.?|u.{0,3}|U.{0,7})…$", shown) or "\\" in hostile


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
def test_tables_in_notebooks_hold_text_only(table):
    """To a parser the table has the same tags whether its texts are words or attacks."""
    with pl.Config(tbl_rows=100, fmt_str_lengths=10**6):
        assert Outline(table(frame_of(WORDS))).tags == Outline(table(frame_of(TEXTS))).tags


def test_printable_frames_are_calm_in_a_terminal():
    """One row stays one line, as wide as its box; what polars prints by itself is not calm."""
    with pl.Config(tbl_rows=100, fmt_str_lengths=200, tbl_width_chars=-1):
        assert not calm(str(frame_of(TEXTS)))
        shown = str(bf.printable(frame_of(TEXTS)))

    assert calm(shown)
    rows = [line for line in shown.split("\n") if line.startswith("│")]
    assert 3 + 75 == len(rows)
    assert {"│"} == {line[-1] for line in rows}
    assert calm(str(bf.printable(bf.to_pandas(frame_of(TEXTS)))))


def test_printable_frames_keep_everything_else():
    """Numbers, nulls, plain text and the kind of frame stay; the frame itself is as it was."""
    frame = frame_of([*TEXTS, None, "plain"])

    shown = bf.printable(frame)

    assert [text.visible(t) for t in TEXTS] + [None, "plain"] == shown["graffiti_text"].to_list()
    assert frame.schema == shown.schema
    assert frame["slot"].equals(shown["slot"])
    assert shown.equals(bf.printable(frame.lazy()).collect())
    assert [*TEXTS, None, "plain"] == frame["graffiti_text"].to_list()


def test_files_keep_texts_as_they_are():
    """Parquet and JSON are for machines: not a byte of a text is changed."""
    frame = frame_of(TEXTS)
    stored = io.BytesIO()
    frame.write_parquet(stored)
    stored.seek(0)

    assert frame.equals(pl.read_parquet(stored))
    assert TEXTS == [row["graffiti_text"] for row in json.loads(frame.write_json())]


def svg(figure):
    """The tags of a figure, and its texts."""
    kept = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(kept, format="svg")
    root = ET.fromstring(kept.getvalue())
    elements = [(element.tag.rpartition("}")[2], element) for element in root.iter()]
    texts = {"".join(element.itertext()) for tag, element in elements if tag == "text"}
    return [tag for tag, _ in elements], texts


@each_nine
def test_legends_of_static_charts_hold_text_only(texts):
    """Names of groups are drawn letter by letter: no formula, no tag, and none is left out."""
    frame, groups = wall_of(texts)

    axes = plot.wall(frame, show="territory", groups=groups, region=(0, 0, 9, 0))

    shown = axes.get_legend().get_texts()
    expected = {f"{text.for_matplotlib(name)}: 1" for name in groups}
    assert expected == {label.get_text() for label in shown}
    assert all(calm(label.get_text()) for label in shown)
    tags, read = svg(axes.get_figure())
    assert not {"a", "script", "foreignObject"} & set(tags)
    drawn = [label.get_text().replace(r"\$", "$") for label in shown]
    assert set() == {" ".join(d.split()) for d in drawn} - {" ".join(r.split()) for r in read}


@each_nine
def test_words_around_static_charts_hold_text_only(texts):
    """Title, axes, ticks and notes are drawn as text: matplotlib finds no formula in them."""
    labels = [text.for_matplotlib(hostile) for hostile in texts]
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
        assert calm(label)
        assert (label.replace(r"\$", "$"), False) == note._preprocess_math(label)


@each_nine
def test_interactive_walls_hold_text_only(texts):
    """Names of groups beside the scale and under the mouse; and the saved page."""
    frame, groups = wall_of(texts)
    calm_frame, words = wall_of(WORDS[: len(texts)])

    figure = interactive.wall(frame, show="territory", groups=groups, region=(0, 0, 9, 0))

    names = {f"{text.visible(name, text.LABEL)}: 1" for name in texts}
    (drawn,) = figure.data
    assert names == {unplotly(label) for label in drawn.colorbar.ticktext}
    assert names == {unplotly(label) for label in drawn.text.ravel() if label}
    other = interactive.wall(calm_frame, show="territory", groups=words, region=(0, 0, 9, 0))
    pages = [
        f.to_html(div_id="wall", include_plotlyjs=False, full_html=True) for f in (figure, other)
    ]
    assert Outline(pages[1]).tags == Outline(pages[0]).tags


@each_text
def test_words_of_figures_hold_text_only(hostile):
    """Titles, axes, legends, notes, ticks and hover text: plotly finds neither tag nor formula."""
    label, word = text.for_plotly(hostile), "word"

    def page(words):
        figure = go.Figure(
            go.Scatter(x=[1], y=[1], name=words, text=[words], customdata=[words]),
            {"title": words, "xaxis": {"title": words, "tickvals": [1], "ticktext": [words]}},
        )
        figure.update_traces(hovertemplate=f"%{{customdata}} {words}<extra></extra>")
        figure.add_annotation(text=words)
        return figure.to_html(div_id="chart", include_plotlyjs=False)

    assert text.visible(hostile, text.LABEL) == unplotly(label)
    assert len(html.unescape(label)) <= text.LABEL
    assert Outline(page(word)).tags == Outline(page(label)).tags


@pytest.mark.more
def test_exported_notebooks_hold_text_only():
    """A page that nbconvert makes of tables, prints and errors has the tags of a calm one."""
    # Imported here, since they take seconds which every other test would wait for.
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
            # nbconvert's own templates.
            warnings.simplefilter("ignore")
            return Outline(HTMLExporter().from_notebook_node(notebook)[0])

    with pl.Config(tbl_rows=100, fmt_str_lengths=200):
        assert page(WORDS).tags == page(TEXTS).tags


@each_text
def test_errors_are_calm(hostile):
    """Whatever a message quotes, it is one line that leaves the terminal alone."""
    for error in (
        errors.UsageError(f"no {hostile}", hint=hostile),
        errors.ServerError(hostile, endpoint="names", attempts=3),
        errors.MissingRows(hostile),
    ):
        assert calm(str(error))
        assert 1 == len(str(error).splitlines())


@each_text
def test_the_command_is_calm(hostile):
    """A loader of that name is not known, says the command, and does nothing to the terminal."""
    result = CliRunner().invoke(commands, ["dictionary", "--", hostile])

    assert 2 == result.exit_code
    assert calm(result.output)


@each_nine
def test_files_of_pictures_tell_calm_texts(texts, tmp_path):
    """The name of a chain in a picture is one line of what can be seen."""
    frame, _ = wall_of(["one", "two"])

    chain = " ".join(texts)
    still = wall.save(frame, tmp_path / "a.png", region=(0, 0, 3, 3), chain=chain)
    moving = wall.timelapse(frame, tmp_path / "a.gif", region=(0, 0, 3, 3), chain=chain)

    with Image.open(still) as image:
        assert calm(image.text["Chain"])
        assert 1 == len(image.text["Chain"].splitlines())
    with Image.open(moving) as image:
        assert calm(image.info["comment"].decode())
