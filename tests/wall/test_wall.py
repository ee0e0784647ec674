"""The graffiti wall: images, PNG files, and pixels read from graffiti."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from PIL import Image

from beaconframes import wall
from beaconframes.errors import DatasetError, UsageError
from beaconframes.frames import is_simulated
from beaconframes.pandas_frames import to_pandas

SCHEMA = {"slot": pl.Int64, "x": pl.Int64, "y": pl.Int64, "color": pl.String}


def changes(*rows):
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def dense_wall(count=20_000, colours=40, seed=3):
    """Many writes to few pixels: most of them are painted over, some twice in one slot."""
    rng = np.random.default_rng(seed)
    palette = [f"{colour:06x}" for colour in rng.integers(0, 2**24, colours)]
    return pl.DataFrame(
        {
            "slot": rng.integers(0, count // 2, count),
            "x": rng.integers(0, 1000, count) // 25,
            "y": 999 - rng.integers(0, 1000, count) // 25,
            "color": [palette[i] for i in rng.integers(0, colours, count)],
        },
        schema=SCHEMA,
    )


def paint_in_a_loop(frame):
    """The definition: every change in the order of slots, over the earlier ones."""
    pixels = np.zeros((1000, 1000, 4), np.uint8)
    for _, x, y, color in frame.sort("slot", maintain_order=True).iter_rows():
        pixels[y, x] = (*bytes.fromhex(color), 255)
    return pixels


def rgba(path):
    with Image.open(path) as image:
        return np.asarray(image.convert("RGBA"))


def test_last_write_wins_exactly():
    """After 20,000 writes to 1,600 pixels every pixel matches a plain loop."""
    frame = dense_wall()

    image = wall.render(frame, region="all")

    assert ("RGBA", (1000, 1000)) == (image.mode, image.size)
    assert np.array_equal(paint_in_a_loop(frame), np.asarray(image))


def test_the_order_of_rows_does_not_matter():
    """A shuffled frame paints the same wall."""
    frame = dense_wall().unique(["slot", "x", "y"], keep="first")

    expected = np.asarray(wall.render(frame.sort("slot")))

    assert np.array_equal(
        expected, np.asarray(wall.render(frame.sample(fraction=1, shuffle=True, seed=1)))
    )


def test_origin_is_the_upper_left_corner():
    """X counts to the right, y downwards."""
    image = wall.render(changes((1, 999, 0, "ff0000"), (2, 0, 999, "00FF00")))

    assert (255, 0, 0, 255) == image.getpixel((999, 0))
    assert (0, 255, 0, 255) == image.getpixel((0, 999))
    assert (0, 0, 0, 0) == image.getpixel((0, 0))


def test_region_is_inclusive_and_scale_makes_squares():
    """A region of 3 x 2 pixels, four times as large."""
    frame = changes((1, 10, 20, "0000ff"), (2, 12, 21, "ff0000"), (3, 13, 21, "00ff00"))

    image = wall.render(frame, region=(10, 20, 12, 21), scale=4)

    assert (12, 8) == image.size
    pixels = np.asarray(image)
    assert (pixels[:4, :4] == (0, 0, 255, 255)).all()
    assert (pixels[4:, 8:] == (255, 0, 0, 255)).all()
    assert (pixels[:4, 4:, 3] == 0).all()


def test_background_fills_unpainted_pixels():
    """Painted black and unpainted are different; red and blue of the background stay apart."""
    frame = changes((1, 0, 0, "000000"))
    image = wall.render(frame, background="#0a64fa", region=(0, 0, 1, 0))
    named = wall.render(frame, background="red", region=(0, 0, 1, 0))
    bare = wall.render(frame, background="0A64fa", region=np.array([0, 0, 1, 0]))

    assert np.array_equal(image, bare)
    assert [(0, 0, 0, 255), (10, 100, 250, 255)] == [image.getpixel((x, 0)) for x in (0, 1)]
    assert (255, 0, 0, 255) == named.getpixel((1, 0))


def test_the_default_region_is_the_painted_area():
    """The smallest rectangle that contains every painted pixel; the corners are in the metadata."""
    frame = changes((1, 410, 20, "0000ff"), (2, 413, 21, "ff0000"), (3, 410, 20, "00ff00"))

    image = wall.render(frame, scale=2)

    assert (8, 4) == image.size
    x0, y0, _, _ = image.info["region"]
    assert (410, 20, 413, 21) == image.info["region"]
    assert (255, 0, 0, 255) == image.getpixel((2 * (413 - x0), 2 * (21 - y0)))
    assert (0, 255, 0, 255) == image.getpixel((0, 0))
    assert (0, 0, 999, 999) == wall.render(frame, region="all").info["region"]


@pytest.mark.parametrize("kind", [pl.DataFrame.lazy, to_pandas, pl.DataFrame.to_pandas])
def test_takes_other_frames(kind):
    """Lazy and pandas frames paint the same."""
    frame = dense_wall(500)

    assert np.array_equal(
        paint_in_a_loop(frame), np.asarray(wall.render(kind(frame), region="all"))
    )


@pytest.mark.parametrize("kind", [pl.DataFrame, pl.DataFrame.to_pandas])
def test_no_rows_make_an_empty_wall(kind):
    """An empty wall is no error: all of it is transparent."""
    image = wall.render(kind(changes()))

    assert not np.asarray(image).any()
    assert (1000, 1000) == image.size
    assert {"region": (0, 0, 999, 999), "scale": 1} == image.info


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"x": 1000}, "x=1000"),
        ({"x": -1}, "x=-1"),
        ({"y": 1000}, "y=1000"),
        ({"y": None}, "y=None"),
        ({"slot": None}, "slot=None"),
        ({"color": "#0000ff"}, "color='#0000ff'"),
        ({"color": "#000ff"}, "color='#000ff'"),
        ({"color": "+00000"}, "color='+00000'"),
        ({"color": "00000g"}, "color='00000g'"),
        ({"color": "fff"}, "color='fff'"),
        ({"color": ""}, "color=''"),
        ({"color": None}, "color=None"),
    ],
)
def test_invalid_pixels_are_refused_with_their_row(bad, named):
    """A row that is not a pixel of the wall is an error with row and value."""
    good = {"slot": 1, "x": 2, "y": 3, "color": "abcdef"}

    with pytest.raises(UsageError, match="row 1 is not a pixel") as caught:
        wall.render(pl.DataFrame([good, good | bad], schema=SCHEMA))

    assert named in str(caught.value)


def test_half_pixels_are_refused():
    """A position that is not an integer is not rounded."""
    frame = changes((1, 2, 3, "abcdef")).with_columns(x=pl.lit(2.5))

    with pytest.raises(UsageError, match=r"x=2\.5"):
        wall.render(frame)


def test_missing_columns_are_named():
    """The message has the column and its loader."""
    with pytest.raises(UsageError, match=r"no column y, color.*bf\.load_graffiti_wall"):
        wall.render(changes().drop("y", "color"))


@pytest.mark.parametrize(
    "region",
    [(0, 0, 1000, 10), (5, 0, 4, 10), (-1, 0, 1, 1), (0, 0, 1), (0, 0, 1.5, 2), "whole", 7],
)
def test_invalid_regions_are_refused(region):
    """A region lies on the wall and has four integer corners."""
    with pytest.raises(UsageError, match="region="):
        wall.render(changes(), region=region)


@pytest.mark.parametrize("scale", [0, -1, 1.5, True, 1000, "2"])
def test_invalid_scales_are_refused(scale):
    """A scale is a positive integer, and no picture becomes too large to open."""
    with pytest.raises(UsageError, match="scale="):
        wall.render(changes(), scale=scale)


@pytest.mark.parametrize("background", ["nocolour", "#12345678", "1234567", 7, (0, 0, 0)])
def test_invalid_backgrounds_are_refused(background):
    """A background is a solid colour."""
    with pytest.raises(UsageError, match="background="):
        wall.render(changes(), background=background)


def test_saved_pixels_are_the_rendered_ones(tmp_path):
    """A frame of few colours becomes a small file with a palette, exact to the pixel."""
    frame = dense_wall()

    path = wall.save(frame, tmp_path / "wall.png", region="all")

    with Image.open(path) as image:
        assert "P" == image.mode
    assert np.array_equal(paint_in_a_loop(frame), rgba(path))


def test_as_many_colours_as_a_palette_holds(tmp_path):
    """255 colours and "unpainted" fit; with one more, the file has full colours."""
    modes = {}
    for count in (255, 256):
        frame = changes(*((i, i, 0, f"{i:06x}") for i in range(count)))
        path = wall.save(frame, tmp_path / f"{count}.png", region="all")
        with Image.open(path) as image:
            modes[count] = image.mode
        assert np.array_equal(paint_in_a_loop(frame), rgba(path))

    assert {255: "P", 256: "RGBA"} == modes


@pytest.mark.parametrize("colours", [40, 400])
def test_saved_options_are_as_in_render(tmp_path, colours):
    """Region, scale and background of a file, with a palette and without."""
    frame = dense_wall(colours=colours)
    options = {"region": (10, 950, 60, 999), "scale": 3, "background": "#0a64fa"}

    path = wall.save(frame, tmp_path / "wall.png", **options)

    assert np.array_equal(np.asarray(wall.render(frame, **options)), rgba(path))


@pytest.mark.parametrize("colours", [40, 400])
def test_an_image_is_saved_as_it_is(tmp_path, colours):
    """An image keeps its pixels and the slots that render stored."""
    image = wall.render(changes((7, 1, 1, "ffffff"), (9, 2, 2, "000000")), region=(0, 0, 9, 9))
    image.putpixel((5, 5), (1, 2, 3, 128))

    path = wall.save(image, tmp_path / "wall.png")

    assert np.array_equal(np.asarray(image), rgba(path))
    with Image.open(path) as saved:
        assert "7" == saved.text["First slot"]
        assert "0,0,9,9" == saved.text["Region"]


def test_an_image_takes_no_render_options(tmp_path):
    """Options without an effect are an error."""
    with pytest.raises(UsageError, match="already painted"):
        wall.save(wall.render(changes()), tmp_path / "wall.png", scale=2)


def test_metadata_is_in_the_file(tmp_path):
    """The file has its slots, its chain, and whether it is simulated."""
    frame = changes((12, 1, 1, "ffffff"), (90, 2, 2, "000000"), (34, 3, 3, "123456"))

    path = wall.save(frame, tmp_path / "wall.png", chain="mainnet", simulated=True)

    with Image.open(path) as image:
        assert {
            "Software": "beaconframes",
            "Region": "1,1,3,3",
            "Scale": "333",
            "First slot": "12",
            "Last slot": "90",
            "Chain": "mainnet",
            "Simulated": "yes",
        } == image.text


@pytest.mark.parametrize(
    ("width", "height", "size"),
    [(200, 120, (1000, 600)), (3, 7, (426, 994)), (501, 4, (501, 4)), (1000, 1000, (1000, 1000))],
)
def test_a_file_fills_a_screen(tmp_path, width, height, size):
    """The longer side has at most 1,000 pixels; a pixel of the wall is a square of one colour."""
    frame = changes((1, 0, 0, "ff0000"), (2, width - 1, height - 1, "0000ff"))

    pixels = rgba(wall.save(frame, tmp_path / "wall.png", background="white"))

    assert size == pixels.shape[1::-1]
    scale = size[0] // width
    expected = wall.render(frame, background="white")
    assert np.array_equal(np.asarray(expected).repeat(scale, 0).repeat(scale, 1), pixels)
    given = wall.save(frame, tmp_path / "given.png", scale=scale, background="white")
    assert np.array_equal(pixels, rgba(given))


@pytest.mark.parametrize("write", [wall.save, wall.timelapse])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("wall.jpg", "JPEG blurs pixels"),
        ("wall.JPEG", "JPEG blurs pixels"),
        ("wall", "its ending has no format"),
        ("wall.png.txt", "its ending has no format"),
    ],
)
def test_only_exact_formats_are_written(tmp_path, write, name, reason):
    """The error has the reason and the endings that work, and nothing is written."""
    with pytest.raises(UsageError, match=rf"'{name}' cannot be written: {reason}.*\.png") as caught:
        write(changes(), tmp_path / name)

    assert (".gif" in str(caught.value)) == (write is wall.timelapse)
    assert [] == list(tmp_path.iterdir())


def test_missing_folder_is_named(tmp_path):
    """The message has the missing folder."""
    with pytest.raises(UsageError, match=r"the folder .*nowhere.* does not exist"):
        wall.save(changes(), tmp_path / "nowhere" / "wall.png")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    """The disk is full while writing: the old picture stays, and no partial file is left."""
    path = wall.save(changes((1, 1, 1, "ffffff")), tmp_path / "wall.png")
    before = path.read_bytes()

    def fill_the_disk(image, file, **_):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Image.Image, "save", fill_the_disk)
    with pytest.raises(DatasetError, match="No space left"):
        wall.save(changes((2, 1, 1, "000000")), path)

    assert before == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


GENESIS = datetime(2020, 12, 1, 12, 0, 23, tzinfo=UTC)


def blocks(*rows):
    """Blocks from (slot, status, proposer, graffiti bytes or None)."""
    return pl.DataFrame(
        [
            (
                slot,
                GENESIS + timedelta(seconds=12 * slot),
                status,
                proposer,
                None if graffiti is None else "0x" + graffiti.ljust(32, b"\0").hex(),
            )
            for slot, status, proposer, graffiti in rows
        ],
        schema={
            "slot": pl.Int64,
            "time": pl.Datetime("us", "UTC"),
            "status": pl.String,
            "proposer_index": pl.Int64,
            "graffiti": pl.String,
        },
        orient="row",
    )


@pytest.mark.parametrize(
    ("graffiti", "pixel"),
    [
        (b"graffitiwall:50:60:#efefef", (50, 60, "efefef")),
        (b"graffitiwall:0:999:#EFefEF", (0, 999, "EFefEF")),
        (b"graffitiwall:007:9:#000000", (7, 9, "000000")),
        (b"xx graffitiwall:1:2:#abcdef", (1, 2, "abcdef")),
        (b"\xff\xfe\x80 gw:001002abcdef", (1, 2, "abcdef")),
        (b"RP-N v1.0.0 (gw:050060efefef)", (50, 60, "efefef")),
        (b"gw:999000ABCDEF0000", (999, 0, "ABCDEF")),
        # The long form has priority, at any position.
        (b"gw:1 graffitiwall:1:2:#aaaaaa", (1, 2, "aaaaaa")),
        (b"gw:xgw:001002aaaaaa", (1, 2, "aaaaaa")),
        (b"graffitiwall:1000:2:#aaaaaa", None),
        (b"graffitiwall:1:2:aaaaaa", None),
        (b"graffitiwall:1:2:#aaaaa", None),
        (b"graffitiwall:-1:2:#aaaaaa", None),
        (b"graffitiwall::2:#aaaaaa", None),
        (b"GraffitiWall:1:2:#aaaaaa", None),
        (b"GW:001002aaaaaa", None),
        (b"gw:001002#aaaaaa", None),
        (b"gw:1002aaaaaa", None),
        (b"gw:\xd9\xa1\xd9\xa1\xd9\xa11002aaaaaa", None),
        (b"", None),
    ],
)
def test_graffiti_that_paints(graffiti, pixel):
    """Both formats, anywhere in the 32 bytes; other text paints nothing."""
    painted = wall.from_blocks(blocks((5, "proposed", 77, graffiti)))

    assert ([pixel] if pixel else []) == painted.select("x", "y", "color").rows()


def test_the_long_form_has_priority():
    """With both forms in one graffiti, the long one paints."""
    text = "0x" + b"gw:001002aaaaaa graffitiwall:3:4:#bbbbbb".hex()
    frame = blocks((5, "proposed", 77, b"")).with_columns(graffiti=pl.lit(text))

    assert [(3, 4, "bbbbbb")] == wall.from_blocks(frame).select("x", "y", "color").rows()


@pytest.mark.parametrize("convert", [pl.DataFrame.clone, to_pandas])
def test_a_wall_of_simulated_blocks_is_simulated(convert):
    """Step 12, 9: the caption of its picture says so."""
    frame = convert(blocks((5, "proposed", 77, b"gw:001002aaaaaa")))
    frame.attrs = {"simulated": True}

    assert is_simulated(wall.from_blocks(frame))
    assert not is_simulated(wall.from_blocks(blocks((5, "proposed", 77, b"gw:001002aaaaaa"))))


def test_from_blocks_returns_the_columns_of_the_wall():
    """One row per pixel with slot, time and proposer, sorted by slot."""
    painted = wall.from_blocks(
        blocks(
            (9, "proposed", 3, b"gw:009009999999"),
            (5, "missed", 2, None),
            (4, "proposed", 1, b"hello"),
            (2, "orphaned", 8, b"graffitiwall:2:2:#222222"),
        )
    )

    expected = pl.DataFrame(
        {
            "slot": [2, 9],
            "x": [2, 9],
            "y": [2, 9],
            "time": [GENESIS + timedelta(seconds=24), GENESIS + timedelta(seconds=108)],
            "color": ["222222", "999999"],
            "validator_index": [8, 3],
        },
        schema_overrides={"time": pl.Datetime("us", "UTC")},
    )
    assert expected.equals(painted)
    assert expected.schema == painted.schema
    assert wall.from_blocks(blocks()).schema == expected.schema


def test_a_slot_paints_one_pixel():
    """An orphaned block beside the proposed one of its slot paints only if that one does not."""
    both = [(5, "orphaned", 1, b"gw:001001111111"), (5, "proposed", 2, b"gw:002002222222")]
    idle = [(6, "orphaned", 3, b"gw:003003333333"), (6, "proposed", 4, b"hello")]

    painted = wall.from_blocks(blocks(*both, *idle))

    assert [(5, 2), (6, 3)] == painted.select("slot", "validator_index").rows()


def test_from_blocks_returns_the_same_kind_of_frame():
    """Pandas in, pandas out; lazy in, lazy out; the same rows."""
    frame = blocks((5, "proposed", 1, b"gw:001001111111"), (6, "missed", 2, None))
    expected = wall.from_blocks(frame)

    assert expected.equals(wall.from_blocks(frame.lazy()).collect())
    assert expected.equals(pl.from_pandas(wall.from_blocks(to_pandas(frame))))


def test_graffiti_that_is_not_hex_is_refused():
    """The error has the slot."""
    frame = blocks((5, "proposed", 1, b"gw:")).with_columns(graffiti=pl.lit("0x67773azz"))

    with pytest.raises(UsageError, match="graffiti of slot 5"):
        wall.from_blocks(frame)


@pytest.mark.parametrize("number", [float("inf"), float("nan"), 2.0**63, 2**64 - 1])
def test_a_number_that_is_no_integer_of_64_bits_is_refused(number):
    """The error shows the row; no error of polars is raised."""
    dtype = pl.Float64 if isinstance(number, float) else pl.UInt64
    frame = pl.DataFrame({"slot": [1], "x": pl.Series([number], dtype=dtype), "y": [3]})

    with pytest.raises(UsageError, match=r"row 0 is not a pixel"):
        wall.render(frame.with_columns(color=pl.lit("ff0000")))
