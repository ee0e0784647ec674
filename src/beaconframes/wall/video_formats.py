"""Video formats, for places that take no animated pictures: MP4 and WebM."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from beaconframes.errors import DatasetError

if TYPE_CHECKING:
    from pathlib import Path

    from beaconframes.wall.animation import Animation

_SLOWEST = 20  # Frames per second; some players refuse fewer.
# The quality is high: colours differ by single steps, except at the edges of pixels.
VIDEOS = {
    ".mp4": ("libx264", {"crf": "18", "tune": "animation"}),
    ".webm": ("libvpx-vp9", {"crf": "20", "b": "0", "cpu-used": "5", "row-mt": "1"}),
}
_CONTAINER = {".mp4": {"movflags": "faststart"}, ".webm": {}}  # Pages play it while it loads.
_BT709 = 1  # The colours that players expect of a video, by their number in FFmpeg.


def write_video(animation: Animation, path: Path, ending: str) -> None:
    """Write whole frames at a constant rate; a frame that is shown for longer is repeated."""
    import av

    codec, options = VIDEOS[ending]
    rate = Fraction(animation.rate).limit_denominator(1000)
    rate *= math.ceil(_SLOWEST / rate)
    try:
        with av.open(path, "w", format=ending[1:], options=_CONTAINER[ending]) as container:
            container.metadata["comment"] = animation.description
            stream: Any = container.add_stream(codec, rate=rate, options=options)
            canvas = _build_canvas(animation)
            stream.width, stream.height = canvas.size
            stream.pix_fmt = "yuv420p"
            stream.codec_context.colorspace = stream.codec_context.color_primaries = _BT709
            stream.codec_context.color_trc = _BT709
            elapsed = written = 0
            for change, delay in animation.pair_delays():
                image = animation.build_rgba_image(change)
                canvas.paste(image, animation.find_corner(change), image)
                frame = av.VideoFrame.from_ndarray(np.asarray(canvas), format="rgb24")
                frame = frame.reformat(format="yuv420p", dst_colorspace="ITU709")
                elapsed += delay
                while written < round(elapsed * rate / 1000):
                    frame.pts = written
                    container.mux(stream.encode(frame))
                    written += 1
            container.mux(stream.encode(None))
    except av.FFmpegError as error:
        raise DatasetError(f"the video {path.name!r} cannot be written: {error}") from error


def _build_canvas(animation: Animation) -> Image.Image:
    """Build the first frame, of the colour of unpainted pixels; a video has even sides."""
    width, height = animation.width * animation.scale, animation.height * animation.scale
    if animation.strip:
        height += animation.strip.height
    return Image.new("RGB", (width + width % 2, height + height % 2), f"#{animation.paper:06x}")
