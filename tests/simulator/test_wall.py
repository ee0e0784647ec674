"""Test the simulated graffiti wall and the graffiti of blocks."""

import re

import polars as pl

from ..support.simulated_chain import decode_pixels


def test_the_wall_is_what_the_blocks_paint(simulated):
    """Decoding the blocks' graffiti gives the wall; orphaned blocks change nothing."""
    rows = simulated.graffiti_wall.drop("time").rows()

    assert decode_pixels(simulated.blocks.filter(pl.col("status") == "proposed")) == rows
    assert decode_pixels(simulated.blocks) == rows


def test_graffiti_text_is_the_bytes_without_padding(simulated):
    """The text is the bytes without their padding."""
    for text, data in simulated.produced.select("graffiti_text", "graffiti").unique().rows():
        assert text == bytes.fromhex(data[2:]).rstrip(b"\0").decode()


def test_both_formats_of_pixels_occur(simulated):
    """Both formats of pixels occur, in both cases; other texts and near misses as well."""
    texts = " ".join(simulated.produced["graffiti_text"])

    assert re.search(r"graffitiwall:\d+:\d+:#[0-9]*[a-f]", texts)
    assert re.search(r"\(gw:\d{6}[0-9A-F]{6}\)", texts)
    assert "graffitiwall:1200:40:#ff0000" in texts
    assert simulated.produced["graffiti_text"].n_unique() > 10
    # E16: few validators write colors in upper case.
    has_upper = simulated.graffiti_wall["color"].str.contains("[A-F]")
    assert 0.005 < has_upper.mean() < 0.1


def test_the_picture_is_complete_and_parts_were_painted_over(simulated):
    """The picture is complete and in the middle, and parts were painted over."""
    wall = simulated.graffiti_wall
    last = wall.unique(["x", "y"], keep="last", maintain_order=True)
    (left, right), (top, bottom) = ((wall[axis].min(), wall[axis].max()) for axis in ("x", "y"))
    area = (right - left + 1) * (bottom - top + 1)

    assert 998 <= left + right <= 1000
    assert 998 <= top + bottom <= 1000
    assert area == last.height < wall.height
    assert area >= 3_500
    # A lighthouse has red and white; the vandalized pixels were painted over.
    colors = last["color"].str.to_lowercase().value_counts().rows()
    counts = dict(colors)
    assert counts["c8372d"] > 20 < counts["f4efe4"]
    assert "ff00aa" in set(wall["color"].str.to_lowercase())
    assert "ff00aa" not in counts
