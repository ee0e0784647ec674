"""Videos of the wall: length, colours and dates as a player shows them."""

import resource
import shutil
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import av
import numpy as np
import pytest

from beaconframes import errors, wall
from beaconframes.errors import DatasetError, UsageError

from ..support.painted_walls import paint

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
FORMATS = ("mp4", pytest.param("webm", marks=pytest.mark.more))
COLOURS = ["ff0000", "00ff00", "0000ff", "ffff00", "123456", "ffffff", "000000", "c08040"]


def make_wall(width=16, height=8):
    """Every pixel painted in turn, 100 slots apart."""
    return paint(
        *(
            (100 * i, i % width, i // width, COLOURS[(i * 5 + i // width) % len(COLOURS)], 7)
            for i in range(width * height)
        )
    )


def read_video(path):
    """The frames as a player shows them, in RGB, and their times in seconds."""
    with av.open(path) as container:
        frames = [
            (frame.reformat(format="rgb24", src_colorspace="ITU709").to_ndarray(), frame.time)
            for frame in container.decode(video=0)
        ]
        stream = container.streams.video[0]
        assert (1, 1, 1) == (
            stream.codec_context.colorspace,
            stream.codec_context.color_primaries,
            stream.codec_context.color_trc,
        )
        return container.duration / 1e6, dict(container.metadata), frames


def middles(pixels, scale, width, height):
    """The colour in the middle of each pixel of the wall."""
    middle = slice(scale // 2, None, scale)
    return pixels[: scale * height, : scale * width][middle, middle].astype(int)


@pytest.mark.parametrize("form", FORMATS)
def test_a_video_has_its_length_and_colours(tmp_path, form):
    """Four seconds; half of the wall in the middle, all of it at the end, in the right colours."""
    frame = make_wall()

    path = wall.timelapse(frame, tmp_path / f"a.{form}", seconds=4, hold=2, frames=8, scale=20)

    length, metadata, shown = read_video(path)
    assert 4 == length
    assert (80, 0.0, 3.95) == (len(shown), shown[0][1], shown[-1][1])
    expected = np.asarray(wall.render(frame, background="white"))[..., :3].astype(int)
    for until, rows in ((0.2, 1), (0.3, 2), (1, 5), (1.7, 7), (1.8, 8), (3.9, 8)):
        (pixels,) = [pixels for pixels, time in shown if abs(time - until) < 0.01]
        painted = middles(pixels, 20, 16, 8)
        assert 6 >= np.abs(painted[:rows] - expected[:rows]).max()
        assert 6 >= np.abs(painted[rows:] - 255).max(initial=0)
    text = {name.lower(): value for name, value in metadata.items()}["comment"]
    assert "Software: beaconframes; Region: 0,0,15,7; Scale: 20; First slot: 0" in text
    if form == "mp4":  # A page plays it before all of it is loaded.
        assert path.read_bytes().index(b"moov") < path.read_bytes().index(b"mdat")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({}, (992, 496)),
        ({"region": (0, 0, 14, 6), "scale": 3}, (46, 22)),
        ({"region": (0, 0, 332, 0)}, (666, 2)),
        ({"region": (0, 0, 599, 0)}, (1200, 2)),
    ],
)
def test_sides_and_default_scale_are_even(tmp_path, form, options, size):
    """Encoders need even sides, and sharp colours an even scale; what is added is paper."""
    path = wall.timelapse(
        make_wall(), tmp_path / f"a.{form}", seconds=1, hold=0.9, frames=2, dates=False, **options
    )

    _, _, shown = read_video(path)
    assert size == shown[-1][0].shape[1::-1]
    assert 240 < shown[-1][0][-1, -1].min() or "scale" not in options


def test_a_video_has_dates_and_a_background(tmp_path):
    """Below the wall: light text on the background."""
    path = wall.timelapse(
        make_wall(), tmp_path / "a.mp4", seconds=1, hold=0.5, scale=20, background="#102030"
    )

    _, _, shown = read_video(path)
    strip = shown[-1][0][160:]
    assert (14, 320) == strip.shape[:2]
    assert 8 >= np.abs(strip[-1, -100:].astype(int) - (16, 32, 48)).max()
    assert 20 < (strip.min(axis=2) > 180).sum()
    assert 8 >= np.abs(middles(shown[0][0], 20, 16, 8)[-1].astype(int) - (16, 32, 48)).max()


@pytest.mark.parametrize("form", ["mp4", "webm"])
def test_without_the_extra_the_error_says_how_to_install_it(tmp_path, form, monkeypatch):
    """Before anything is computed or written."""
    monkeypatch.setattr(errors, "find_spec", lambda name: None)

    with pytest.raises(
        UsageError, match=r"needs the package av.*pip install 'beaconframes\[video\]'"
    ):
        wall.timelapse(make_wall(), tmp_path / f"a.{form}")

    assert [] == list(tmp_path.iterdir())
    assert wall.timelapse(make_wall(), tmp_path / "a.gif", scale=1).exists()


@pytest.mark.parametrize("form", FORMATS)
def test_a_failed_write_leaves_the_old_file(tmp_path, form):
    """A file may not grow beyond 500 bytes, as on a full disk: the old file stays."""
    path = tmp_path / f"a.{form}"
    path.write_bytes(b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
    try:
        with pytest.raises(DatasetError, match=r"cannot be written"):
            wall.timelapse(make_wall(), path, seconds=1, hold=0.5, scale=8)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert b"old" == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
@pytest.mark.parametrize("form", ["mp4", "webm"])
def test_a_browser_plays_it(tmp_path, form):
    """Chromium plays ten seconds to the end, and shows the colours of the last picture."""
    from playwright.sync_api import sync_playwright

    frame = make_wall()
    path = wall.timelapse(frame, tmp_path / f"a.{form}", seconds=10, scale=20)
    (tmp_path / "page.html").write_text(f'<video src="{path.name}" muted></video>')
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page()
            page.set_default_timeout(60_000)
            page.goto(f"http://127.0.0.1:{server.server_port}/page.html")
            length, ended, size, pixels = page.evaluate(
                """async () => {
                    const video = document.querySelector("video");
                    video.playbackRate = 8;
                    await video.play();
                    await new Promise((done) => video.addEventListener("ended", done));
                    const canvas = document.createElement("canvas");
                    const size = [video.videoWidth, video.videoHeight];
                    [canvas.width, canvas.height] = size;
                    const context = canvas.getContext("2d");
                    context.drawImage(video, 0, 0);
                    const image = context.getImageData(0, 0, ...size);
                    return [video.duration, video.currentTime, size, Array.from(image.data)];
                }"""
            )
            browser.close()
    finally:
        server.shutdown()
        server.server_close()

    assert (10, 10) == (round(length, 2), round(ended, 2))
    shown = np.array(pixels).reshape(size[1], size[0], 4)[..., :3]
    expected = np.asarray(wall.render(frame))[..., :3].astype(int)
    assert 16 >= np.abs(middles(shown, 20, 16, 8) - expected).max()
