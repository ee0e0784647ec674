"""Exact animation formats, written frame by frame: GIF and animated PNG."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
from PIL import GifImagePlugin, PngImagePlugin

if TYPE_CHECKING:
    from pathlib import Path

    from beaconframes.wall.animation import Animation

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MIN_DELAY = 20  # Milliseconds; browsers slow down shorter frames.


def write_gif(animation: Animation, path: Path) -> None:
    """Write the changes with Pillow's frame encoder: its own loop would keep all frames in memory.

    A GIF frame has room for 255 colours, those of its date included. With more colours on the
    wall, each frame has its own palette, and the colours that do not fit follow in another frame,
    shortly after.
    """
    with path.open("xb") as file:
        has_header = False
        for change, delay in animation.pair_delays():
            pieces = [(change, animation.colours)]
            if not animation.fits_palette:
                frame_colours = np.unique(change.value)
                size = animation.palette_size
                slices = [frame_colours[i : i + size] for i in range(0, len(frame_colours), size)]
                pieces = [(change.select_colours(colours), colours) for colours in slices] or [
                    (change, frame_colours)
                ]
            split_time = _MIN_DELAY * (len(pieces) - 1)
            durations = [_MIN_DELAY] * (len(pieces) - 1) + [max(delay - split_time, _MIN_DELAY)]
            for (piece, colours), duration in zip(pieces, durations, strict=True):
                image = animation.build_palette_image(piece, colours)
                if not has_header:
                    info = {"loop": 0, "comment": animation.description.encode()}
                    file.writelines(GifImagePlugin.getheader(image, info=info)[0])
                    has_header = True
                file.writelines(
                    GifImagePlugin.getdata(
                        image,
                        animation.find_corner(change),
                        duration=min(duration, 10 * 0xFFFF),
                        transparency=0,
                        disposal=1,
                        include_color_table=not animation.fits_palette,
                    )
                )
        file.write(b";")


def write_png(animation: Animation, path: Path) -> None:
    """Write the changes as an animated PNG: Pillow encodes each frame, its data chunks are copied.

    Pillow's own loop would keep all frames in memory and compare them again.
    """
    description = PngImagePlugin.PngInfo()
    for name, text in animation.entries.items():
        description.add_text(name, text)
    with path.open("xb") as file:
        file.write(_SIGNATURE)
        serial = 0
        for number, (change, delay) in enumerate(animation.pair_delays()):
            if animation.fits_palette:
                image = animation.build_palette_image(change, animation.colours)
            else:
                image = animation.build_rgba_image(change)
            pnginfo = None if number else description
            chunks = PngImagePlugin.getchunks(image, pnginfo=pnginfo)
            if number == 0:
                for kind, content, _ in chunks:
                    if kind not in {b"IDAT", b"IEND"}:
                        PngImagePlugin.putchunk(file, kind, content)
                PngImagePlugin.putchunk(file, b"acTL", struct.pack(">II", len(animation.delays), 0))
            corner = animation.find_corner(change)
            dispose, blend = 0, int(number > 0)  # Draw over the previous frame.
            pause = min(delay // 10, 0xFFFF), 100
            control = struct.pack(">5I2H2B", serial, *image.size, *corner, *pause, dispose, blend)
            PngImagePlugin.putchunk(file, b"fcTL", control)
            data = b"".join(content for kind, content, _ in chunks if kind == b"IDAT")
            if number == 0:
                PngImagePlugin.putchunk(file, b"IDAT", data)
            else:
                PngImagePlugin.putchunk(file, b"fdAT", struct.pack(">I", serial + 1), data)
            serial += 1 + int(number > 0)
        PngImagePlugin.putchunk(file, b"IEND")
