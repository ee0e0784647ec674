"""Animated images, written frame by frame: GIF, PNG, WebP and MP4."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING

import numpy as np
from PIL import ExifTags, GifImagePlugin, Image, PngImagePlugin

from beaconframes.errors import UsageError
from beaconframes.wall.painting import PALETTE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from beaconframes.wall.film import Film

_MEMORY = 2**30  # Bytes of frames that WebP, which wants all of them at once, may take.
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_SHORTEST = 20  # Milliseconds; browsers show what is shorter for much longer.


def writer(target: Path) -> Callable[[Film, Path], None]:
    """Choose how to write by the end of the file's name."""
    if (found := _WRITERS.get(target.suffix.lower())) is None:
        raise UsageError(
            f"{target.name!r} is no name of an animation",
            hint=f"Let it end in {', '.join(_WRITERS)}.",
        )
    return found


def _gif(film: Film, part: Path) -> None:
    """Write what changed, by Pillow's encoder of frames: its own loop would keep all of them.

    A frame of this format has room for 255 colours. Where there are more on the wall each frame has
    a palette of its own, and what does not fit into one follows in another, very soon.
    """
    with part.open("xb") as file:
        begun = False
        for shot, delay in film.timed():
            pieces = [(shot, film.colours)]
            if not film.few:
                own = np.unique(shot.value)
                slices = [own[i : i + PALETTE] for i in range(0, len(own), PALETTE)]
                pieces = [(shot.part(colours), colours) for colours in slices] or [(shot, own)]
            early = _SHORTEST * (len(pieces) - 1)
            shown = [_SHORTEST] * (len(pieces) - 1) + [max(delay - early, _SHORTEST)]
            for (piece, colours), duration in zip(pieces, shown, strict=True):
                image = film.indexed(piece, colours)
                if not begun:
                    info = {"loop": 0, "comment": film.told.encode()}
                    file.writelines(GifImagePlugin.getheader(image, info=info)[0])
                    begun = True
                file.writelines(
                    GifImagePlugin.getdata(
                        image,
                        (shot.left * film.scale, shot.top * film.scale),
                        duration=min(duration, 10 * 0xFFFF),
                        transparency=0,
                        disposal=1,
                        include_color_table=not film.few,
                    )
                )
        file.write(b";")


def _png(film: Film, part: Path) -> None:
    """Write what changed. Pillow makes a PNG of each frame, and its data go into the file.

    Pillow's own loop over frames would keep all of them, and compare what is compared.
    """
    told = PngImagePlugin.PngInfo()
    for name, text in film.about.items():
        told.add_text(name, text)
    with part.open("xb") as file:
        file.write(_SIGNATURE)
        serial = 0
        for number, (shot, delay) in enumerate(film.timed()):
            image = film.image(shot)
            chunks = _chunks(image, None if number else told)
            if number == 0:
                for kind, content in chunks:
                    if kind not in {b"IDAT", b"IEND"}:
                        PngImagePlugin.putchunk(file, kind, content)
                PngImagePlugin.putchunk(file, b"acTL", struct.pack(">II", len(film.delays), 0))
            corner = shot.left * film.scale, shot.top * film.scale
            kept, over = 0, int(number > 0)  # What is there stays, and this lies on it.
            pause = min(delay // 10, 0xFFFF), 100
            control = struct.pack(">5I2H2B", serial, *image.size, *corner, *pause, kept, over)
            PngImagePlugin.putchunk(file, b"fcTL", control)
            data = b"".join(content for kind, content in chunks if kind == b"IDAT")
            if number == 0:
                PngImagePlugin.putchunk(file, b"IDAT", data)
            else:
                PngImagePlugin.putchunk(file, b"fdAT", struct.pack(">I", serial + 1), data)
            serial += 1 + int(number > 0)
        PngImagePlugin.putchunk(file, b"IEND")


def _chunks(image: Image.Image, told: PngImagePlugin.PngInfo | None) -> list[tuple[bytes, bytes]]:
    """Give the parts of the PNG that Pillow makes of an image, by name."""
    kept = io.BytesIO()
    image.save(kept, format="PNG", pnginfo=told)
    data, start = kept.getvalue(), len(_SIGNATURE)
    parts = []
    while start < len(data):
        (length,) = struct.unpack_from(">I", data, start)
        parts.append((data[start + 4 : start + 8], data[start + 8 : start + 8 + length]))
        start += length + 12
    return parts


def _webp(film: Film, part: Path) -> None:
    """Write by libwebp, which finds by itself what changed."""
    needed = film.width * film.height * film.scale**2 * len(film.delays) * (1 if film.few else 4)
    if needed > _MEMORY:
        raise UsageError(
            f"{len(film.delays)} frames of this size are too much for WebP",
            hint='Write a ".gif" or a ".png", fewer frames, or a part of the wall.',
        )
    exif = Image.Exif()
    exif[ExifTags.Base.ImageDescription] = film.told
    frames = [canvas.copy() for canvas in film.canvases()]
    with part.open("xb") as file:
        frames[0].save(
            file,
            format="WEBP",
            save_all=True,
            append_images=frames[1:],
            duration=film.delays,
            loop=0,
            lossless=True,
            kmin=0,
            kmax=0,  # No frame is written whole between those that hold only changes.
            exif=exif,
        )


def _mp4(film: Film, part: Path) -> None:
    """Write by ffmpeg, which comes with imageio-ffmpeg."""
    try:
        import imageio_ffmpeg
    except ImportError:
        raise UsageError(
            "writing MP4 needs the package imageio-ffmpeg",
            hint='Install it by pip install "beaconframes[video]", or write a ".gif".',
        ) from None
    width, height = film.width * film.scale, film.height * film.scale
    even = width + width % 2, height + height % 2  # Its colours lie in squares of 2 x 2 pixels.
    sink = imageio_ffmpeg.write_frames(
        str(part),
        even,
        fps=1000 / film.tick,
        quality=None,
        macro_block_size=2,
        ffmpeg_log_level="error",
        output_params=["-crf", "18", "-f", "mp4", "-metadata", f"comment={film.told}"],
    )
    sink.send(None)
    for canvas, delay in zip(film.canvases(), film.delays, strict=True):
        picture = Image.new("RGB", even)
        picture.paste(canvas.convert("RGBA").convert("RGB"))
        for _ in range(round(delay / film.tick)):
            sink.send(picture.tobytes())
    sink.close()


_WRITERS = {".gif": _gif, ".png": _png, ".webp": _webp, ".mp4": _mp4}
