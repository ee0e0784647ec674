"""Measures of the wall: age, overwrites, territory, and the difference to a target."""

import itertools
import struct
import zlib
from collections import Counter
from functools import partial

import numpy as np
import polars as pl
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from beaconframes import wall
from beaconframes.errors import UsageError
from beaconframes.pandas_frames import to_pandas

from ..support.painted_walls import START, WALL, paint


def many(count=20_000, seed=4):
    rng = np.random.default_rng(seed)
    return paint(
        *zip(
            rng.permutation(count).tolist(),
            rng.integers(0, 40, count).tolist(),
            rng.integers(0, 30, count).tolist(),
            [f"{value:06x}" for value in rng.integers(0, 3, count)],
            rng.integers(0, 50, count).tolist(),
            strict=True,
        )
    )


def test_age_is_that_of_the_last_write():
    """Row by row of the wall: the last painter of a pixel, its time, and its age in slots."""
    aged = wall.age(WALL)

    columns = ["x", "y", "slot", "time", "color", "validator_index", "age_slots"]
    assert columns == aged.columns
    assert [(1, 0, 30, 9, 10), (2, 0, 25, 7, 15), (1, 1, 40, 8, 0)] == aged.select(
        "x", "y", "slot", "validator_index", "age_slots"
    ).rows()


def test_age_at_an_earlier_slot():
    """Writes after *until* do not count, and age counts from *until*, in any region."""
    assert [(1, 0, 20, 8, 2)] == wall.age(WALL, until=22).select(
        "x", "y", "slot", "validator_index", "age_slots"
    ).rows()
    assert [10, 15] == wall.age(WALL, region=(0, 0, 9, 0))["age_slots"].to_list()


@pytest.mark.parametrize("until", [-1, 1.5, True, "9"])
def test_invalid_slots_are_refused(until):
    """A slot is a positive integer."""
    with pytest.raises(UsageError, match="until="):
        wall.age(WALL, until=until)


def test_overwrites_count_the_writes_after_the_first():
    """The same colour in other letter case is not a new colour."""
    counted = wall.overwrites(WALL)

    assert {
        "x": [1, 2, 1],
        "y": [0, 0, 1],
        "paints": [3, 1, 1],
        "overwrites": [2, 0, 0],
        "recolours": [1, 0, 0],
        "painters": [3, 1, 1],
        "first_slot": [10, 25, 40],
        "last_slot": [30, 25, 40],
    } == counted.to_dict(as_series=False)


def test_counts_of_many_writes_match_a_loop():
    """20,000 unordered writes to 1,200 pixels."""
    frame = many()
    history = {}
    for slot, x, y, color, painter, _ in sorted(frame.iter_rows()):
        history.setdefault((y, x), []).append((slot, color, painter))
    expected = [
        (
            *(x, y, len(writes), len(writes) - 1),
            sum(a[1] != b[1] for a, b in itertools.pairwise(writes)),
            len({painter for *_, painter in writes}),
            *(writes[0][0], writes[-1][0]),
        )
        for (y, x), writes in sorted(history.items())
    ]

    assert expected == wall.overwrites(frame).rows()
    held = wall.territory(frame, per_pixel=True)
    assert [
        (x, y, writes[-1][2], writes[-1][0]) for (y, x), writes in sorted(history.items())
    ] == held.rows()


def test_territory_by_validator():
    """The last painter holds a pixel; a validator that holds none is listed with its writes."""
    held = wall.territory(WALL.filter(pl.col("x") == 1))

    assert {
        "validator_index": [8, 9, 7],
        "pixels": [1, 1, 0],
        "share": [0.5, 0.5, 0.0],
        "paints": [2, 1, 1],
    } == held.to_dict(as_series=False)


def test_territory_by_group():
    """Groups are names of validators; null is all others."""
    held = wall.territory(WALL, groups={"ours": range(8), "theirs": [9]})

    expected = [("ours", 1, 1 / 3, 2), ("theirs", 1, 1 / 3, 1), (None, 1, 1 / 3, 2)]
    assert ["group", "pixels", "share", "paints"] == held.columns
    assert sorted(expected, key=str) == sorted(held.rows(), key=str)
    assert [("theirs", 1), ("ours", 2), (None, 1)] == wall.territory(
        WALL, groups={"ours": range(8), "theirs": [9]}, per_pixel=True
    ).select("group", "x").rows()


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ({"a": [1], "b": [1]}, "validator 1 is in more than one group"),
        ({"a": 1}, "are not groups"),
        ({"a": ["x"]}, "are not groups"),
        (["a"], "are not groups"),
    ],
)
def test_invalid_groups_are_refused(groups, said):
    """A validator is in at most one group, and a group has a name."""
    with pytest.raises(UsageError, match=said):
        wall.territory(WALL, groups=groups)


@pytest.mark.parametrize("kind", [dict, pl.DataFrame, to_pandas, pl.DataFrame.lazy])
def test_territory_of_painters_by_name(kind):
    """Validators of one name are one painter; a validator without a name is itself."""
    rows = pl.DataFrame({"validator_index": [7, 8, 9, 7], "name": ["Ada", "", "Ada", "Ada"]})
    names = {7: "Ada", 9: "Ada"} if kind is dict else kind(rows)

    held = wall.territory(WALL, names=names)

    assert {
        "name": ["Ada", None],
        "validator_index": [None, 8],
        "pixels": [2, 1],
        "share": [2 / 3, 1 / 3],
        "paints": [3, 2],
    } == held.to_dict(as_series=False)
    assert [("Ada", None, 1, 0), ("Ada", None, 2, 0), (None, 8, 1, 1)] == wall.territory(
        WALL, names=names, per_pixel=True
    ).select("name", "validator_index", "x", "y").rows()


def test_a_name_like_a_number_is_not_that_validator():
    """Owners choose their names: one that is called "8" is not validator 8."""
    held = wall.territory(WALL, names={7: "8"})

    assert {("8", None, 1), (None, 8, 1), (None, 9, 1)} == set(
        held.select("name", "validator_index", "pixels").rows()
    )


def test_who_painted_over_whom():
    """8 painted 7's red pixel green, and 9 painted it green once more."""
    pairs = wall.overwrites(WALL, by="painter")

    assert ["validator_index", "over_validator_index", "overwrites", "recolours"] == pairs.columns
    assert [(8, 7, 1, 1), (9, 8, 1, 0)] == pairs.rows()
    named = wall.overwrites(WALL, by="painter", names={7: "Ada", 8: "Ada"})
    assert [(None, 9, "Ada", None, 1, 0)] == named.rows()
    assert ["name", "validator_index", "over_name", "over_validator_index"] == named.columns[:4]
    grouped = wall.overwrites(WALL, by="painter", groups={"a": [7], "b": [9]}, region=(0, 0, 1, 0))
    assert [("b", None, 1, 0), (None, "a", 1, 1)] == grouped.rows()
    assert wall.overwrites(WALL, by="painter", region=(2, 0, 9, 9)).is_empty()


def test_writes_of_loads_that_overlap_are_refused():
    """A write that occurs twice has painted over nothing."""
    both = pl.concat([WALL, WALL.tail(2)])
    uses = [wall.overwrites, lambda rows: wall.overwrites(rows, by="painter"), wall.territory]
    for use in uses:
        with pytest.raises(UsageError, match="4 rows of the frame repeat each other: slot"):
            use(both)


def test_overwrites_by_painter_match_a_loop():
    """For 3,000 writes of 9 validators, most overwrites first; all and own add up to the total."""
    rng = np.random.default_rng(4)
    frame = paint(
        *(
            (slot, x, y, f"{colour:06x}", validator)
            for slot, (x, y, colour, validator) in enumerate(
                rng.integers(0, (6, 5, 3, 9), (3000, 4)).tolist()
            )
        )
    )
    held, expected, own = {}, Counter(), 0
    for _, x, y, colour, validator, _ in frame.iter_rows():
        if (x, y) in held:
            earlier, before = held[x, y]
            own += earlier == validator
            if earlier != validator:
                expected[validator, earlier, "overwrites"] += 1
                expected[validator, earlier, "recolours"] += colour != before
        held[x, y] = validator, colour

    pairs = wall.overwrites(frame.sample(fraction=1, shuffle=True, seed=1), by="painter")

    found = {(a, b): (n, m) for a, b, n, m in pairs.rows()}
    assert found == {
        (a, b): (expected[a, b, "overwrites"], expected[a, b, "recolours"]) for a, b, _ in expected
    }
    assert pairs["overwrites"].is_sorted(descending=True)
    assert wall.overwrites(frame)["overwrites"].sum() == pairs["overwrites"].sum() + own


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"names": {7: "a"}, "groups": {"a": [7]}}, "groups and names both"),
        ({"names": {"x": "a"}}, "are not names"),
        ({"names": {7: 5}}, "are not names"),
        ({"names": ["Ada"]}, "expected a frame"),
        ({"names": pl.DataFrame({"validator_index": [7]})}, "no column name"),
        (
            {"names": pl.DataFrame({"validator_index": [7, 7], "name": ["a", "b"]})},
            "validator 7 has more than one name",
        ),
    ],
)
def test_invalid_names_are_refused(options, said):
    """The error has the value, and the way to get names."""
    for measure in (wall.territory, partial(wall.overwrites, by="painter")):
        with pytest.raises(UsageError, match=said):
            measure(WALL, **options)


def test_names_need_painters():
    """An argument without an effect is an error."""
    for options in ({"names": {7: "a"}}, {"groups": {"a": [7]}}):
        with pytest.raises(UsageError, match='by="painter"'):
            wall.overwrites(WALL, **options)
    with pytest.raises(UsageError, match="by='validator'"):
        wall.overwrites(WALL, by="validator")


MEASURES = [partial(wall.overwrites, by="painter"), wall.age, wall.overwrites, wall.territory]


@pytest.mark.parametrize("measure", MEASURES)
def test_measures_return_the_same_kind_of_frame(measure):
    """Pandas in, pandas out; lazy in, lazy out; the same rows."""
    expected = measure(WALL)

    assert expected.equals(measure(WALL.lazy()).collect())
    assert expected.equals(pl.from_pandas(measure(to_pandas(WALL))))


@pytest.mark.parametrize("measure", MEASURES)
def test_measures_of_no_rows_have_all_columns(measure):
    """An empty wall is no error."""
    assert measure(WALL).schema == measure(WALL.head(0)).schema
    assert measure(WALL.head(0)).is_empty()


def target(*pixels, size=(3, 2)):
    """A picture from (x, y, colour, opacity), transparent elsewhere."""
    image = Image.new("RGBA", size)
    for x, y, color, opacity in pixels:
        image.putpixel((x, y), (*bytes.fromhex(color), opacity))
    return image


def test_diff_lists_the_pixels_to_paint():
    """Pixels that are wrong or empty, row by row, each with the graffiti that repairs it."""
    picture = target((1, 0, "00ff00", 255), (2, 0, "fedcba", 255), (0, 1, "010203", 255))

    todo = wall.diff(WALL, picture)

    assert {
        "x": [2, 0],
        "y": [0, 1],
        "painted": ["0000ff", None],
        "color": ["fedcba", "010203"],
        "graffiti": ["graffitiwall:2:0:#fedcba", "graffitiwall:0:1:#010203"],
    } == todo.to_dict(as_series=False)


def test_diff_in_the_short_form_at_another_position():
    """The upper left corner of the picture is at this position."""
    todo = wall.diff(WALL, target((2, 1, "abcdef", 255)), at=(40, 7), form="short")

    assert [(42, 8, None, "abcdef", "gw:042008abcdef")] == todo.rows()


def test_transparent_pixels_are_not_painted():
    """Below half opacity any colour is right; from there on the colour counts."""
    picture = target((1, 0, "ffffff", 127), (2, 0, "ffffff", 128))

    assert [(2, 0)] == wall.diff(WALL, picture).select("x", "y").rows()


def test_black_is_not_unpainted():
    """A black pixel is listed where the wall is unpainted, until it is painted black."""
    picture = target((0, 0, "000000", 255))

    assert [(None, "000000")] == wall.diff(WALL, picture).select("painted", "color").rows()
    assert wall.diff(paint((1, 0, 0, "000000", 1)), picture).is_empty()


@pytest.mark.parametrize("form", ["long", "short"])
def test_painting_the_graffiti_makes_the_picture(form, tmp_path):
    """Blocks with these texts paint the picture; then no pixel is left."""
    rng = np.random.default_rng(6)
    pixels = rng.integers(0, 256, (20, 30, 4), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "target.png")
    todo = wall.diff(WALL, tmp_path / "target.png", at=(970, 980), form=form)
    assert todo["graffiti"].str.len_bytes().max() <= 32
    blocks = todo.select(
        slot=100 + pl.int_range(pl.len()),
        time=pl.lit(START),
        status=pl.lit("proposed"),
        proposer_index=pl.lit(5, pl.Int64),
        graffiti="0x" + pl.col("graffiti").str.encode("hex"),
    )

    after = pl.concat([WALL, wall.from_blocks(blocks).select(WALL.columns)])

    assert todo.height == int((pixels[..., 3] >= 128).sum())
    assert wall.diff(after, tmp_path / "target.png", at=(970, 980)).is_empty()
    shown = np.asarray(wall.render(after, region=(970, 980, 999, 999)))
    wanted = pixels[..., 3] >= 128
    assert np.array_equal(pixels[wanted][:, :3], shown[wanted][:, :3])


@pytest.mark.parametrize("kind", [pl.DataFrame.lazy, to_pandas])
def test_diff_returns_the_same_kind_of_frame(kind):
    """Lazy and pandas frames give the same rows."""
    picture = target((2, 0, "fedcba", 255))
    given = wall.diff(kind(WALL), picture)
    rows = given.collect() if isinstance(given, pl.LazyFrame) else pl.from_pandas(given)

    assert wall.diff(WALL, picture).equals(rows)


def test_diff_between_two_dates(tmp_path):
    """A frame is a target, and a picture of the wall lies where it was painted."""
    earlier = paint((1, 41, 30, "ff0000", 7), (2, 43, 31, "00ff00", 8))
    later = pl.concat([earlier, paint((3, 43, 31, "0000ff", 9), (4, 45, 35, "123456", 9))])
    picture = wall.render(earlier)
    path = wall.save(earlier, tmp_path / "earlier.png")
    large = wall.save(earlier, tmp_path / "large.png", scale=400)
    without_scale = PngInfo()
    without_scale.add_text("Region", "41,30,43,31")  # As 0.1.0 wrote it.
    picture.save(tmp_path / "old.png", pnginfo=without_scale)

    for target in (earlier, earlier.to_pandas(), picture, path, large, tmp_path / "old.png"):
        changed = wall.diff(later, target).select("x", "y", "painted", "color")
        assert [(43, 31, "0000ff", "00ff00")] == changed.rows()
    for cut in (picture.crop((0, 0, 1, 1)), wall.render(earlier, scale=4).crop((0, 0, 6, 4))):
        assert (0, 0) == wall.diff(later, cut).select("x", "y").row(0)
    with pytest.raises(UsageError, match=r"no column x, y, color"):
        wall.diff(later, pl.DataFrame({"slot": [1]}))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"at": (998, 0)}, r"at=\(998, 0\)"),
        ({"at": (0, 999)}, r"at=\(0, 999\)"),
        ({"at": (-1, 0)}, "at="),
        ({"at": 5}, "at=5"),
        ({"form": "hex"}, "form='hex'"),
    ],
)
def test_invalid_positions_are_refused(options, said):
    """All pixels of a picture lie on the wall."""
    with pytest.raises(UsageError, match=said):
        wall.diff(WALL, target(), **options)


def test_unreadable_pictures_are_refused(tmp_path):
    """No file, no picture, half a picture, and one larger than the wall."""
    (tmp_path / "text.png").write_text("no picture")
    Image.new("L", (500, 500)).save(tmp_path / "whole.png")
    whole = (tmp_path / "whole.png").read_bytes()
    (tmp_path / "half.png").write_bytes(whole[:100])
    header = b"IHDR" + struct.pack(">II", 60_000, 60_000) + whole[24:29]
    bomb = whole[:12] + header + struct.pack(">I", zlib.crc32(header)) + whole[33:]
    (tmp_path / "bomb.png").write_bytes(bomb)

    for name in ("missing.png", "text.png", "half.png", "bomb.png"):
        with pytest.raises(UsageError, match="picture"):
            wall.diff(WALL, tmp_path / name)
    with pytest.raises(UsageError, match="1001 x 1 pixels"):
        wall.diff(WALL, Image.new("RGB", (1001, 1)))


@pytest.mark.parametrize("name", ["film.gif", "film.png"])
def test_a_picture_with_more_than_one_frame_is_refused(name, tmp_path):
    """A time-lapse is no target; one of its frames is."""
    wall.timelapse(WALL, tmp_path / name, dates=False, scale=1)

    with pytest.raises(UsageError, match="more than one frame"):
        wall.diff(WALL, tmp_path / name)
    with Image.open(tmp_path / name) as film:
        film.seek(film.n_frames - 1)
        last = film.copy()
    assert wall.diff(WALL, last, at=(0, 0)).height > 0


def test_a_photo_with_a_preview_is_one_picture(tmp_path):
    """The first picture of a file of a camera is the photo."""
    photo, preview = Image.new("RGB", (2, 2), "white"), Image.new("RGB", (1, 1), "white")
    photo.save(tmp_path / "photo.jpg", "MPO", save_all=True, append_images=[preview])

    assert 4 == wall.diff(WALL, tmp_path / "photo.jpg").height
