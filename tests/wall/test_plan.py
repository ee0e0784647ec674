"""The plan of a picture: pixels in the order to paint them, and its progress over time."""

from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np
import polars as pl
import pytest
from PIL import Image

from beaconframes import wall
from beaconframes.errors import UsageError
from beaconframes.pandas_frames import to_pandas

from ..support.painted_walls import START, WALL, paint


def picture(rows, width=3, height=2):
    """A picture with these pixels (x, y, colour); the others are transparent."""
    image = Image.new("RGBA", (width, height))
    for x, y, color in rows:
        image.putpixel((x, y), (*bytes.fromhex(color), 255))
    return image


def test_a_plan_has_every_pixel_and_what_is_right():
    """Of four pixels, (1, 0) and (1, 1) are right; they come last."""
    target = picture([(0, 0, "0a0b0c"), (1, 0, "00ff00"), (2, 0, "ff0000"), (1, 1, "123456")])

    plan = wall.plan(WALL, target, order="rows")

    assert [
        (0, 0, None, "0a0b0c", False, "graffitiwall:0:0:#0a0b0c"),
        (2, 0, "0000ff", "ff0000", False, "graffitiwall:2:0:#ff0000"),
        (1, 0, "00ff00", "00ff00", True, "graffitiwall:1:0:#00ff00"),
        (1, 1, "123456", "123456", True, "graffitiwall:1:1:#123456"),
    ] == plan.rows()
    assert ["x", "y", "painted", "color", "is_right", "graffiti"] == plan.columns
    short = wall.plan(WALL, target, at=(40, 7), form="short", order="rows")
    assert "gw:040007" + "0a0b0c" == short["graffiti"][0]
    assert not short["is_right"].any()


@pytest.mark.parametrize("kind", [pl.DataFrame.lazy, to_pandas])
def test_the_graffiti_to_paint_are_saved(tmp_path, kind):
    """In the order of the plan, without the pixels that are right."""
    target = picture([(0, 0, "0a0b0c"), (1, 0, "00ff00"), (2, 0, "ff0000")])
    plan = kind(wall.plan(WALL, target, form="short", order="rows"))

    text = wall.save_graffiti(plan, tmp_path / "next.txt")
    page = wall.save_graffiti(plan, str(tmp_path / "next.yml"))

    assert "gw:0000000a0b0c\ngw:002000ff0000\n" == text.read_text()
    assert 'ordered:\n- "gw:0000000a0b0c"\n- "gw:002000ff0000"\n' == page.read_text()


def test_the_order_from_the_center():
    """The distance from the middle of the picture grows; equal distances are row by row."""
    plan = wall.plan(WALL.head(0), Image.new("RGB", (5, 3)), at=(100, 200))

    distances = [(x - 102) ** 2 + (y - 201) ** 2 for x, y in plan.select("x", "y").rows()]
    assert sorted(distances) == distances
    assert [(102, 201), (102, 200), (101, 201), (103, 201), (102, 202)] == plan.select(
        "x", "y"
    ).rows()[:5]


def test_the_order_by_rows_and_at_random():
    """Each has every pixel once; what is left has the same order after a part was painted."""
    target = Image.new("RGB", (20, 10), "#ff0000")
    rows = wall.plan(WALL.head(0), target, order="rows").select("x", "y").rows()
    random = wall.plan(WALL.head(0), target, order="random").select("x", "y").rows()

    assert [(x, y) for y in range(10) for x in range(20)] == rows
    assert sorted(rows) == sorted(random)
    # Of the first twenty pixels, some are in each quarter.
    assert 4 == len({(x // 10, y // 5) for x, y in random[:20]})
    done = paint(*((i, x, y, "ff0000", 1) for i, (x, y) in enumerate(random[7:9])))
    left = wall.plan(done, target, order="random").filter(~pl.col("is_right"))
    assert random[:7] + random[9:] == left.select("x", "y").rows()


def test_painting_the_plan_makes_the_picture():
    """In any order, and at any time, the part that was painted is right."""
    rng = np.random.default_rng(3)
    target = Image.fromarray(rng.integers(0, 256, (6, 9, 4), np.uint8))
    plan = wall.plan(WALL, target, at=(500, 500))
    todo = plan.select(
        slot=100 + pl.int_range(pl.len()),
        time=pl.lit(START),
        status=pl.lit("proposed"),
        proposer_index=pl.lit(5, pl.Int64),
        graffiti="0x" + pl.col("graffiti").str.encode("hex"),
    )

    for count in (0, 10, plan.height):
        after = wall.from_blocks(todo.head(count))
        again = wall.plan(after, target, at=(500, 500))
        assert count == again["is_right"].sum()
        assert plan["graffiti"][count:].to_list() == again["graffiti"][: -count or None].to_list()
        assert wall.diff(after, target, at=(500, 500)).height == plan.height - count


def test_a_picture_is_resized_to_a_width():
    """A pixel of the wall is the mean of those of the picture, and opaque if most of them are."""
    large = np.zeros((40, 40, 4), np.uint8)
    large[:20, :20] = (200, 100, 0, 255)
    large[20:, :20:2] = (0, 100, 200, 255)
    large[20:, 1:20:2] = (100, 0, 100, 255)
    large[:20, 20:28] = (250, 100, 50, 255)
    large[20:, 20:32] = (250, 100, 50, 255)

    plan = wall.plan(WALL.head(0), Image.fromarray(large), at=(9, 9), width=2, order="rows")

    assert [(9, 9), (9, 10), (10, 10)] == plan.select("x", "y").rows()
    for expected, color in zip(
        [(200, 100, 0), (50, 50, 150), (250, 100, 50)], plan["color"], strict=True
    ):
        assert expected == pytest.approx(tuple(bytes.fromhex(color)), abs=1)
    palette = Image.fromarray(large[20:, :20]).convert("RGB").convert("P")
    (mixed,) = wall.plan(WALL.head(0), palette, width=1)["color"]
    assert (50, 50, 150) == pytest.approx(tuple(bytes.fromhex(mixed)), abs=3)
    wide = Image.new("RGB", (3000, 1500), "white")
    assert 100 * 50 == wall.plan(WALL, wide, width=100).height


def test_a_picture_of_16_bits_has_8(tmp_path):
    """The upper 8 bits of each pixel; they are not clipped to white."""
    pixels = np.array([[0, 255, 256, 32768, 65535]], np.uint16)
    Image.fromarray(pixels).save(tmp_path / "grey.png")

    plan = wall.plan(WALL, tmp_path / "grey.png", at=(0, 9), order="rows")

    assert ["000000", "000000", "010101", "808080", "ffffff"] == plan["color"].to_list()
    # Pillow opens some files of 16 bits with 32 bits.
    wide = Image.fromarray(pixels.astype(np.int32))
    assert plan.equals(wall.plan(WALL, wide, at=(0, 9), order="rows"))
    dark = Image.fromarray(np.array([[7, 255]], np.int32))
    assert ["070707", "ffffff"] == wall.plan(WALL, dark, order="rows")["color"].to_list()


def test_a_corner_is_two_integers_of_any_type():
    picture = Image.new("RGB", (2, 1), "red")
    plan = wall.plan(WALL.head(0), picture, at=(np.int64(3), np.int32(4)), order="rows")
    assert [(3, 4), (4, 4)] == plan.select("x", "y").rows()
    for wrong in ((True, False), (1.5, 2), 3, (1,)):
        with pytest.raises(UsageError, match="at="):
            wall.plan(WALL.head(0), picture, at=wrong)


def test_progress_by_hand():
    """Three days of a picture of three pixels: one is painted, damaged, and repaired."""
    target = picture([(0, 0, "0000aa"), (1, 0, "0000bb"), (2, 1, "0000cc")])
    day = 7200
    frame = paint(
        (5, 0, 0, "0000AA", 1),
        (6, 0, 0, "0000aa", 2),  # Right again: neither painted nor damaged.
        (7, 1, 0, "ffffff", 2),
        (day, 0, 0, "ffffff", 3),
        (day + 1, 0, 0, "eeeeee", 3),
        (day + 2, 0, 0, "0000aa", 1),
        (day + 3, 1, 0, "0000bb", 1),
        (day + 4, 2, 0, "0000cc", 1),  # Not a pixel of the picture.
        (3 * day, 2, 1, "0000cc", 1),
        (3 * day + 1, 1, 0, "000000", 4),
        (3 * day + 2, 900, 900, "000000", 4),
    )

    progress = wall.progress(frame, target)

    assert {
        "time": [START + timedelta(days=n) for n in range(4)],
        "right": [1, 2, 2, 2],
        "share": [1 / 3, 2 / 3, 2 / 3, 2 / 3],
        "painted": [1, 2, 0, 1],
        "damaged": [0, 1, 0, 1],
    } == progress.to_dict(as_series=False)
    moved = frame.filter(pl.col("x") < 9).with_columns(x=pl.col("x") + 50, y=pl.col("y") + 60)
    assert progress.equals(wall.progress(moved, target, at=(50, 60)))


@pytest.mark.more
@pytest.mark.parametrize("every", ["1h", timedelta(hours=7), "1d", "1mo"])
def test_progress_matches_the_wall_at_each_time(every):
    """At the end of each period, as many pixels are right as a plan of the wall until then says."""
    rng = np.random.default_rng(8)
    colours = ["ff0000", "00ff00"]
    frame = paint(
        *(
            (slot, x, y, colours[colour], 1)
            for slot, (x, y, colour) in zip(
                np.sort(rng.integers(0, 20_000, 900)).tolist(),
                rng.integers(0, (12, 8, 2), (900, 3)).tolist(),
                strict=True,
            )
        )
    )
    target = Image.new("RGB", (10, 6), "#00ff00")

    progress = wall.progress(frame, target, every=every)

    ends = [*progress["time"][1:], datetime.max.replace(tzinfo=UTC)]
    for row, end in zip(progress.rows(named=True), ends, strict=True):
        until = frame.filter(pl.col("time") < pl.lit(end, pl.Datetime("us", "UTC")))
        assert (
            wall.plan(until, target)["is_right"].sum() == row["right"] == round(60 * row["share"])
        )
    assert progress["right"][-1] == (progress["painted"] - progress["damaged"]).sum()


MEASURES = [
    partial(wall.plan, target=picture([(1, 0, "00ff00"), (2, 0, "123456")])),
    partial(wall.progress, target=picture([(1, 0, "00ff00"), (2, 0, "123456")])),
]


@pytest.mark.parametrize("measure", MEASURES)
def test_the_result_is_the_same_kind_of_frame(measure):
    """Lazy in, lazy out; pandas in, pandas out. An empty wall has the same columns."""
    expected = measure(WALL)

    assert expected.equals(measure(WALL.lazy()).collect())
    assert expected.equals(pl.from_pandas(measure(to_pandas(WALL))))
    assert expected.schema == measure(WALL.head(0)).schema
    assert {"plan": 2, "progress": 0}[measure.func.__name__] == measure(WALL.head(0)).height


def test_a_picture_without_opaque_pixels_has_no_rows():
    """Nothing is to be painted, and the share of nothing is 0."""
    nothing = Image.new("RGBA", (3, 3))

    assert wall.plan(WALL, nothing).is_empty()
    assert [(0, 0.0)] == wall.progress(WALL, nothing).select("right", "share").rows()


@pytest.mark.parametrize(
    ("function", "options", "named"),
    [
        (wall.plan, {"order": "spiral"}, "order='spiral'"),
        (wall.plan, {"form": "hex"}, "form='hex'"),
        (wall.plan, {"width": 0}, "width=0"),
        (wall.plan, {"width": 1001}, "width=1001"),
        (wall.plan, {"width": 2.5}, r"width=2\.5"),
        (wall.plan, {"at": (999, 0)}, r"at=\(999, 0\)"),
        (wall.progress, {"every": "1 fortnight"}, "every='1 fortnight'"),
        (wall.progress, {"every": 7200}, "every=7200"),
        (wall.progress, {"every": "1us"}, "every='1us'"),
    ],
)
def test_invalid_arguments_are_refused(function, options, named):
    """Each error has the value."""
    with pytest.raises(UsageError, match=named):
        function(WALL, picture([]), **options)


def test_a_picture_larger_than_the_wall_needs_a_width():
    """The hint names the argument; a width whose height is too large is an error, too."""
    with pytest.raises(UsageError, match=r"2000 x 10 pixels.*width="):
        wall.plan(WALL, Image.new("RGB", (2000, 10)))
    with pytest.raises(UsageError, match=r"has 600 x 1200 pixels"):
        wall.plan(WALL, Image.new("RGB", (10, 20)), width=600)
    with pytest.raises(UsageError, match="no column time"):
        wall.progress(WALL.drop("time"), picture([]))
