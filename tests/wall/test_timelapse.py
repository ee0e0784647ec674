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
from beaconframes.wall.animation import DateStrip

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
    """A time-lapse with one pixel for each pixel of the wall, and without dates."""
    return wall.timelapse(frame, path, **{"scale": 1, "dates": False} | options)


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


@pytest.mark.more
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


@pytest.mark.parametrize("form", ["png", pytest.param("gif", marks=pytest.mark.more)])
@pytest.mark.parametrize(
    "options",
    [
        {"seconds": 4},
        {"seconds": 4, "frames": 7},
        {"seconds": 4, "frames": 77},
        {"seconds": 4, "every": 100},
        {"seconds": 4, "every": "3h"},
        {"seconds": 4, "fps": 30, "hold": 0},
        {"seconds": 4, "fps": 0.3, "hold": 0},
        {"frames": 100, "fps": 50},
    ],
)
def test_the_animation_has_its_length(tmp_path, form, options):
    """Exactly 4 seconds, those of the last frame included, for any number of frames."""
    path = film(dense_wall(), tmp_path / f"a.{form}", **options)

    durations = [duration for _, duration in frames(path)]
    assert 4000 == sum(durations)
    assert 1000 * options.get("hold", 2) <= durations[-1]


@pytest.mark.parametrize(
    ("options", "count", "length"),
    [
        ({}, 160, 10_000),
        ({"hold": 0}, 200, 10_000),
        ({"seconds": 3, "hold": 1, "fps": 10}, 20, 3000),
        ({"frames": 5, "fps": 10, "hold": 1}, 5, 1500),
        ({"frames": 30, "fps": 30, "hold": 0}, 30, 1000),
        ({"frames": 4}, 4, 10_000),
        ({"every": "1h"}, 2, 10_000),
        ({"frames": 500}, 500, 12_000),
    ],
)
def test_two_of_length_rate_and_number_are_enough(tmp_path, options, count, length):
    """By default 10 seconds, 2 of them for the last frame, and 20 frames a second before it.

    500 frames do not fit into 8 seconds: they have the highest rate, 50 a second.
    """
    frame = paint(*((slot, slot, 0, "abcdef") for slot in range(500)))

    shown = frames(film(frame, tmp_path / "a.png", region=(0, 0, 499, 0), **options))

    assert (count, length) == (len(shown), sum(duration for _, duration in shown))
    steps = [duration for _, duration in shown[:-1]]
    assert max(steps) - min(steps) <= 10
    painted = [int((pixels[..., 3] > 0).sum()) for pixels, _ in shown]
    if "every" not in options:
        assert [500 * (number + 1) // count for number in range(count)] == painted


def read_strip(path, wall_height):
    """The strip of dates of each frame, and the shades of its texts from 0 (paper) to 3."""
    found = []
    for pixels, _ in frames(path):
        strip = pixels[wall_height:, :, :3].astype(int)
        paper = strip[0, 0]
        ink = 255 * (paper < 128)
        found.append((tuple(paper), np.rint(3 * (strip - paper) / (ink - paper))[..., 0]))
    return found


@pytest.mark.more
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("options", "paper", "texts"),
    [
        ({"every": 900}, 255, ["2026-10-01 02:59 UTC", "2026-10-01 04:59 UTC"]),
        ({"every": 900, "simulated": True, "background": "#0a0a0a"}, 10, [
            "2026-10-01 02:59 UTC, simulated", "2026-10-01 04:59 UTC, simulated",
        ]),
        ({"frames": 1}, 255, ["2026-10-01 04:59 UTC"]),
    ],
)  # fmt: skip
def test_each_frame_has_its_date(tmp_path, form, options, paper, texts):
    """The time of the last write that it shows, below the wall, which is as without dates."""
    frame = dense_wall()
    options = {"scale": 10, "region": (0, 0, 29, 19)} | options

    dated = film(frame, tmp_path / f"a.{form}", dates=True, **options)
    bare = film(frame, tmp_path / f"b.{form}", **options)

    strip = DateStrip(300, paper * 0x10101)
    for (pixels, _), (expected, _) in zip(frames(dated), frames(bare), strict=True):
        assert (200, 300) == expected.shape[:2]
        assert pixels.shape[:2] == (200 + strip.height, 300)
        assert look_alike(expected, pixels[:200])
    for (colour, drawn), text in zip(read_strip(dated, 200), texts, strict=True):
        assert (paper, paper, paper) == colour
        assert np.array_equal(strip.draw_text(text), drawn)
        assert 50 < (drawn == 3).sum()


def test_frames_of_days_have_no_time(tmp_path):
    """A frame a day: the date is enough."""
    frame = paint(*((7200 * day, day, 0, "111111") for day in range(5)))

    path = film(frame, tmp_path / "a.png", dates=True, every="1d", scale=100)

    strip = DateStrip(500, 0xFFFFFF)
    for day, (_, drawn) in enumerate(read_strip(path, 100), start=1):
        assert np.array_equal(strip.draw_text(f"2026-10-0{day}"), drawn)


def test_the_dates_of_simulated_rows_say_so(tmp_path):
    """Rows of a simulation carry a mark; without `simulated=`, the strip has it."""
    frame = dense_wall()
    frame.attrs = {"simulated": True}

    path = film(frame, tmp_path / "a.png", dates=True, frames=1, scale=20)

    ((_, drawn),) = read_strip(path, 400)
    text = "2026-10-01 04:59 UTC, simulated"
    assert np.array_equal(DateStrip(600, 0xFFFFFF).draw_text(text), drawn)


def test_a_narrow_picture_has_no_strip(tmp_path):
    """A text that does not fit is left out; it is never cut."""
    for scale, height in ((3, 60), (5, 100 + DateStrip(150, 0).height)):
        path = film(dense_wall(), tmp_path / "a.png", dates=True, scale=scale, frames=2)
        with Image.open(path) as image:
            assert (30 * scale, height) == image.size


@pytest.mark.parametrize("form", FORMATS)
def test_dates_and_more_colours_than_a_palette_has(tmp_path, form):
    """252 to 600 colours of the wall, with those of the strip; every last frame is exact."""
    for count in (251, 252, 255, 600):
        frame = paint(*((i % 2, i % 30, i // 30, f"{i * 7:06x}") for i in range(count)))

        path = film(
            frame, tmp_path / f"a.{form}", dates=True, frames=2, scale=10, region=(0, 0, 29, 19)
        )

        expected = np.asarray(wall.render(frame, region=(0, 0, 29, 19), scale=10))
        assert look_alike(expected, frames(path)[-1][0][:200])


def test_dates_need_times(tmp_path):
    """The error has the column; without dates, the frame is enough."""
    frame = dense_wall().drop("time")

    with pytest.raises(UsageError, match="no column time"):
        wall.timelapse(frame, tmp_path / "a.gif")
    assert film(frame, tmp_path / "a.gif", frames=3).exists()
    with pytest.raises(UsageError, match="times of the frame"):
        wall.timelapse(frame.with_columns(time=pl.lit(None, pl.Datetime("us"))), tmp_path / "b.gif")


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
        ({"seconds": 0}, "seconds=0"),
        ({"seconds": 601}, "seconds=601"),
        ({"seconds": 2}, "hold=2 leaves no time of seconds=2"),
        ({"seconds": 3, "frames": 51}, "seconds=3 is too short for 51 frames"),
        ({"seconds": 3, "frames": 51}, "seconds=3.02 or more"),
        ({"seconds": 3, "frames": 9, "fps": 9}, "contradict"),
        ({"seconds": 3, "every": 9, "fps": 9}, "contradict"),
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


@pytest.mark.parametrize("name", ["a.jpg", "a", "a.gif.txt", "a.webp", "a.avi"])
def test_other_formats_are_refused(tmp_path, name):
    """The message names the file and the endings that exist; nothing is written."""
    message = rf"'{re.escape(name)}' cannot be written.* ends in \.gif, \.png, \.mp4 or \.webm\."
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
