"""Animations of the wall: frames, delays and the content of the file."""

import re
import struct
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from PIL import Image, ImageSequence

from beaconframes import wall
from beaconframes.errors import DatasetError, UsageError

FORMATS = ("gif", "png")
START = datetime(2026, 10, 1, tzinfo=UTC)


def paint(*rows):
    """A wall from (slot, x, y, color)."""
    schema = {"slot": pl.Int64, "x": pl.Int64, "y": pl.Int64, "color": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        time=pl.lit(START) + pl.duration(seconds=12 * pl.col("slot"))
    )


def dense_wall(count=3000, colours=40, seed=2):
    """Many writes to few pixels in the upper left corner, two of them in most slots."""
    rng = np.random.default_rng(seed)
    names = [f"{value:06x}" for value in rng.choice(2**24, colours, replace=False)]
    return paint(
        *zip(
            rng.integers(0, count // 2, count).tolist(),
            rng.integers(0, 30, count).tolist(),
            rng.integers(0, 20, count).tolist(),
            [names[i] for i in rng.integers(0, colours, count)],
            strict=True,
        )
    )


def frames(path):
    """Every frame as a viewer shows it, and its milliseconds."""
    with Image.open(path) as image:
        return [
            (np.asarray(frame.convert("RGBA")).copy(), frame.info["duration"])
            for frame in ImageSequence.Iterator(image)
        ]


def film(frame, path, **options):
    """A time-lapse with one pixel for each pixel of the wall."""
    return wall.timelapse(frame, path, **{"scale": 1} | options)


def paint_in_a_loop(frame, until, width, height, background=(0, 0, 0, 0)):
    """The definition: every change up to a slot, over the earlier ones."""
    pixels = np.full((height, width, 4), background, np.uint8)
    for slot, x, y, color, _ in frame.sort("slot", maintain_order=True).iter_rows():
        if slot <= until and x < width and y < height:
            pixels[y, x] = (*bytes.fromhex(color), 255)
    return pixels


def look_alike(left, right):
    """Whether two pictures look the same; the colour of transparent pixels does not matter."""
    seen = (left[..., 3:] > 0) | (right[..., 3:] > 0)
    return np.array_equal(np.where(seen, left, 0), np.where(seen, right, 0))


def frame_sizes(path):
    """The size of the rectangle of each frame of an animated PNG."""
    data, start, found = path.read_bytes(), 8, []
    while start < len(data):
        length, kind = struct.unpack_from(">I4s", data, start)
        if kind == b"fcTL":
            found.append(struct.unpack_from(">4xII", data, start + 8))
        start += length + 12
    return found


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("colours", [40, 400])
def test_every_frame_is_exact(tmp_path, form, colours):
    """Each of 15 frames matches a plain loop, with colours for one palette and for more."""
    frame = dense_wall(colours=colours)
    path = film(frame, tmp_path / f"a.{form}", every=100, region=(0, 0, 29, 19))

    shown = frames(path)

    assert 15 == len(shown)
    for number, (pixels, _) in enumerate(shown):
        assert look_alike(paint_in_a_loop(frame, 100 * number + 99, 30, 20), pixels)


@pytest.mark.parametrize("form", FORMATS)
def test_region_scale_and_background_are_as_in_render(tmp_path, form):
    """The last frame is the picture of render, enlarged and on a background."""
    frame = dense_wall()
    options = {"region": (3, 2, 25, 12), "scale": 3, "background": "#0a64fa"}

    path = film(frame, tmp_path / f"a.{form}", frames=7, **options)

    assert np.array_equal(np.asarray(wall.render(frame, **options)), frames(path)[-1][0])


@pytest.mark.parametrize("form", FORMATS)
def test_more_new_colours_than_a_palette_has(tmp_path, form):
    """A frame with 600 new colours ends exact in a format with 255 per frame."""
    first = paint(*((0, i % 30, i // 30, f"{i * 7:06x}") for i in range(600)))
    second = paint(*((9, i % 30, i // 30, f"{i * 11:06x}") for i in range(600)))
    frame = pl.concat([first, second])

    path = film(frame, tmp_path / f"a.{form}", frames=2, region=(0, 0, 29, 19), fps=5)

    shown = frames(path)
    assert look_alike(paint_in_a_loop(frame, 9, 30, 20), shown[-1][0])
    assert any(look_alike(paint_in_a_loop(frame, 0, 30, 20), pixels) for pixels, _ in shown)
    assert 2 * 200 + 2000 == sum(duration for _, duration in shown)


def test_only_changes_are_in_the_file(tmp_path):
    """A frame that changes two pixels is the rectangle around them, in a PNG and in a GIF."""
    frame = paint(
        (0, 0, 0, "111111"), (1, 999, 999, "222222"), (2, 5, 7, "333333"), (2, 8, 9, "444444")
    )

    png = film(frame, tmp_path / "a.png", every=1)
    gif = film(frame, tmp_path / "a.gif", every=1)

    expected = [(1000, 1000), (1, 1), (4, 3)]
    assert expected == frame_sizes(png)
    with Image.open(gif) as image:
        boxes = [frame.dispose_extent for frame in ImageSequence.Iterator(image)]
    assert expected == [(x1 - x0, y1 - y0) for x0, y0, x1, y1 in boxes]


def test_paint_of_the_same_colour_is_no_change(tmp_path):
    """A write of the present colour costs a pixel, not a rectangle."""
    frame = paint(
        (0, 0, 0, "111111"), (0, 9, 9, "111111"), (1, 0, 0, "111111"), (1, 9, 9, "111111")
    )

    path = film(frame, tmp_path / "a.png", every=1, region=(0, 0, 9, 9))

    assert [(10, 10), (1, 1)] == frame_sizes(path)
    assert look_alike(frames(path)[0][0], frames(path)[1][0])


@pytest.mark.parametrize("form", FORMATS)
def test_a_pause_is_one_frame_shown_for_longer(tmp_path, form):
    """Without writes for three slots, three frames of 100 ms are one of 300 ms."""
    frame = paint((0, 0, 0, "111111"), (3, 1, 0, "222222"), (4, 2, 0, "333333"))

    path = film(frame, tmp_path / f"a.{form}", every=1, fps=10, hold=1, region=(0, 0, 3, 3))

    assert [300, 100, 1100] == [duration for _, duration in frames(path)]


def test_frames_divide_the_slots_evenly(tmp_path):
    """Four frames of slots 0 to 7 end at slots 1, 3, 5 and 7."""
    frame = paint(*((slot, slot, 0, "abcdef") for slot in range(8)))

    shown = frames(film(frame, tmp_path / "a.png", frames=4, region=(0, 0, 7, 0)))

    assert [2, 4, 6, 8] == [int((pixels[..., 3] > 0).sum()) for pixels, _ in shown]


def test_the_default_is_two_hundred_frames(tmp_path):
    """Without frames and every, 400 slots are 200 frames of two slots each."""
    frame = paint(*((slot, slot, 0, "abcdef") for slot in range(400)))

    shown = frames(film(frame, tmp_path / "a.png", region=(0, 0, 399, 0)))

    assert [*range(2, 401, 2)] == [int((pixels[..., 3] > 0).sum()) for pixels, _ in shown]


@pytest.mark.parametrize(
    ("every", "counts"),
    [
        ("1d", [2, 2, 3]),
        (timedelta(days=1), [2, 2, 3]),
        ("36h", [2, 3]),
        ("1mo", [3]),
        (7200, [2, 2, 3]),
    ],
)
def test_frames_by_time_begin_at_round_times(tmp_path, every, counts):
    """A day in UTC, 36 hours, a month; 7200 slots are a day as well. A day of rest is a pause."""
    frame = paint((0, 0, 0, "111111"), (7199, 1, 0, "222222"), (2 * 7200, 2, 0, "333333"))

    path = film(frame, tmp_path / "a.png", every=every, fps=10, hold=0)

    shown = frames(path)
    expected = [n for i, n in enumerate(counts) if i == 0 or counts[i - 1] != n]
    assert expected == [int((pixels[..., 3] > 0).sum()) for pixels, _ in shown]
    assert 100 * len(counts) == sum(duration for _, duration in shown)


@pytest.mark.parametrize("form", FORMATS)
def test_an_empty_wall_is_one_frame(tmp_path, form):
    """An empty wall is no error."""
    path = film(paint(), tmp_path / f"a.{form}", region=(0, 0, 4, 4))

    with Image.open(path) as image:
        assert not np.asarray(image.convert("RGBA"))[..., 3].any()


@pytest.mark.parametrize("form", FORMATS)
def test_the_file_has_slots_and_chain(tmp_path, form):
    """As in a still picture: PNG's text, GIF's comment."""
    frame = paint((12, 1, 1, "ffffff"), (90, 2, 2, "000000"))

    path = film(frame, tmp_path / f"a.{form}", chain="hoodi", simulated=True)

    with Image.open(path) as image:
        if form == "png":
            text = "; ".join(f"{name}: {text}" for name, text in image.text.items())
        else:
            text = image.info["comment"].decode()
    assert (
        "Software: beaconframes; Region: 1,1,2,2; Scale: 1; First slot: 12; Last slot: 90; "
        "Chain: hoodi; Simulated: yes"
    ) == text


@pytest.mark.parametrize("kind", [pl.DataFrame.lazy, pl.DataFrame.to_pandas])
def test_takes_other_frames(tmp_path, kind):
    """Lazy and pandas frames make the same file, by slot and by time."""
    frame = dense_wall(300)
    for every in (50, "10m"):
        expected = film(frame, tmp_path / "a.gif", every=every).read_bytes()
        assert expected == film(kind(frame), tmp_path / "b.gif", every=every).read_bytes()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"frames": 0}, "frames=0"),
        ({"frames": True}, "frames=True"),
        ({"frames": 10**6}, "frames=1000000"),
        ({"frames": 3, "every": 3}, "frames and every"),
        ({"every": 0}, "every=0"),
        ({"every": "1 fortnight"}, "every='1 fortnight'"),
        ({"every": "-1d"}, "every='-1d'"),
        ({"every": timedelta(0)}, "every=datetime.timedelta"),
        ({"every": timedelta(days=-1)}, "every=datetime.timedelta"),
        ({"every": "1us"}, "every='1us'"),
        ({"fps": 0}, "fps=0"),
        ({"fps": 51}, "fps=51"),
        ({"hold": -1}, "hold=-1"),
        ({"scale": 0}, "scale=0"),
        ({"scale": 100, "region": (0, 0, 999, 0)}, "scale=100"),
        ({"region": (0, 0, 1000, 0)}, "region="),
        ({"background": "nocolour"}, "background="),
    ],
)
def test_invalid_arguments_are_refused(tmp_path, options, named):
    """Each error has the value, and nothing is written."""
    with pytest.raises(UsageError) as caught:
        film(dense_wall(100), tmp_path / "a.gif", **options)

    assert named in str(caught.value)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a.jpg", "a", "a.gif.txt", "a.webp", "a.mp4"])
def test_other_formats_are_refused(tmp_path, name):
    """The message names the file and the endings that exist; nothing is written."""
    message = rf"'{re.escape(name)}' cannot be written.* ends in \.gif or \.png\."
    with pytest.raises(UsageError, match=message):
        film(paint(), tmp_path / name)

    assert [] == list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    """The disk is full while writing: the old file stays, and no partial file is left."""
    path = film(dense_wall(100), tmp_path / "a.gif", frames=5)
    before = path.read_bytes()

    def fill_the_disk(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("PIL.GifImagePlugin.getdata", fill_the_disk)
    with pytest.raises(DatasetError, match="No space left"):
        film(dense_wall(100, seed=3), path, frames=5)

    assert before == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())
