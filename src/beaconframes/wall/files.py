"""The wall as a PNG file."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from beaconframes.errors import DatasetError, UsageError
from beaconframes.wall.painting import indexed, paint, rgba, scaled

if TYPE_CHECKING:
    import os

    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.wall.painting import Region

_PALETTE = 255  # The palette of a PNG has 256 entries, and one means "unpainted".


def save(
    wall: IntoFrame | Image.Image,
    path: str | os.PathLike[str],
    *,
    region: Region | None = None,
    scale: int = 1,
    background: str | None = None,
    chain: str | None = None,
    simulated: bool | None = None,
) -> Path:
    """Write the graffiti wall to a PNG file, whole or not at all, and return its path.

    *wall* is a frame, painted with *region*, *scale* and *background* as by ``render``, or an image
    as it is. Up to 255 colours the file has a palette, which makes it small. Its text entries tell
    the first and the last slot of the frame and, where given, the *chain* and whether the data are
    *simulated*.
    """
    target = Path(path)
    if target.suffix.lower() != ".png":
        raise UsageError(
            f"{target.name!r} is no name of a PNG file", hint='Let it end in ".png", for example.'
        )
    if not isinstance(wall, Image.Image):
        picture = paint(wall, region)
        form = indexed if len(picture.colours) <= _PALETTE else rgba
        image = scaled(form(picture, background), scale, picture)
    elif (region, scale, background) == (None, 1, None):
        image = _compact(wall)
    else:
        raise UsageError(
            "region, scale and background are for painting, and this image is painted",
            hint="Give them to bf.wall.render(...), or save the frame.",
        )
    about = {"Software": "beaconframes"}
    for key, name in (("first_slot", "First slot"), ("last_slot", "Last slot")):
        if key in image.info:
            about[name] = str(image.info[key])
    if chain is not None:
        about["Chain"] = chain
    if simulated is not None:
        about["Simulated"] = "yes" if simulated else "no"
    entries = PngInfo()
    for name, text in about.items():
        entries.add_text(name, text)
    _write(image, target, entries)
    return target


def _compact(image: Image.Image) -> Image.Image:
    """Give an image with few colours a palette; every pixel keeps its colour and opacity."""
    if image.mode != "RGBA":
        return image
    pixels = np.asarray(image).view(">u4")[..., 0]
    entries, index = np.unique(pixels, return_inverse=True)
    if len(entries) > _PALETTE:
        return image
    small = Image.fromarray(index.reshape(pixels.shape).astype(np.uint8))
    parts = entries.view(np.uint8).reshape(-1, 4)
    small.putpalette(parts[:, :3].tobytes())
    small.info = {**image.info, "transparency": parts[:, 3].tobytes()}
    return small


def _write(image: Image.Image, target: Path, entries: PngInfo) -> None:
    """Write beside the target and rename: a file of that name is always a whole picture."""
    if not target.parent.is_dir():
        raise UsageError(f"there is no folder {str(target.parent)!r}", hint="Make it first.")
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            image.save(file, format="PNG", pnginfo=entries)
        part.replace(target)
    except OSError as error:
        raise DatasetError(f"{str(target)!r} cannot be written: {error}") from error
    finally:
        part.unlink(missing_ok=True)
