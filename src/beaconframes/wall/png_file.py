"""PNG files of the wall, their metadata, and atomic writes."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from beaconframes.errors import DatasetError, UsageError
from beaconframes.text import visible
from beaconframes.wall.images import (
    PALETTE,
    build_palette_image,
    build_rgba_image,
    enlarge_image,
    paint_region,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterator, Mapping

    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.wall.pixel_writes import RegionChoice


_NAME = 200  # Maximum characters of a chain's name.
_NUMBERS = {"scale": "Scale", "first_slot": "First slot", "last_slot": "Last slot"}
_JPEG = {".jpg", ".jpeg", ".jfif"}
_LEVEL = 5  # A third less CPU time than Pillow's default, and a tenth more bytes.


def save(
    wall: IntoFrame | Image.Image,
    path: str | os.PathLike[str],
    *,
    region: RegionChoice = None,
    scale: int | None = None,
    background: str | None = None,
    chain: str | None = None,
    simulated: bool | None = None,
) -> Path:
    """Write the graffiti wall to a PNG file, atomically, and return its path.

    With up to 255 colours the file has a palette, which makes it small. Its text entries are the
    region, the scale, the first and the last slot of the frame and, where given, the *chain* and
    whether the data are *simulated*.

    Parameters
    ----------
    wall
        An image; or a frame, which ``render`` draws in this region, scale and background.
    path
        A name that ends in .png.
    region
        Region of the wall, or ``"all"`` of it. The default is the painted area.
    scale
        Width and height of each pixel of the wall, in pixels of the image. The default fills a
        screen: up to 1,000 pixels.
    background
        Colour of unpainted pixels, such as ``#ffffff``; the default is transparent.
    chain, simulated
        Metadata of the file.
    """
    target = Path(path)
    check_ending(target, (".png",))
    if not isinstance(wall, Image.Image):
        picture = paint_region(wall, region)
        small = build_palette_image(picture, background)
        image = enlarge_image(small or build_rgba_image(picture, background), scale, picture)
    elif (region, scale, background) == (None, None, None):
        image = _reduce_colours(wall)
    else:
        raise UsageError(
            "region, scale and background do not apply to an image that is already painted",
            hint="Pass them to bf.wall.render(...), or save the frame.",
        )
    png_info = PngInfo()
    for name, text in describe_data(image.info, chain, simulated).items():
        png_info.add_text(name, text)
    with write_atomically(target) as part, part.open("xb") as file:
        image.save(file, format="PNG", pnginfo=png_info, compress_level=_LEVEL)
    return target


def check_ending(target: Path, endings: Collection[str]) -> None:
    """Raise unless the name ends in one of the endings of exact formats."""
    ending = target.suffix.lower()
    if ending in endings:
        return
    reason = "JPEG blurs pixels" if ending in _JPEG else "its ending has no format"
    *others, last = endings
    raise UsageError(
        f"{target.name!r} cannot be written: {reason}",
        hint=f"Use a name that ends in {', '.join(others)}{' or ' * bool(others)}{last}.",
    )


def describe_data(
    info: Mapping[Any, Any], chain: str | None, simulated: bool | None
) -> dict[str, str]:
    """Return the metadata of a file, by name."""
    entries = {"Software": "beaconframes"}
    if "region" in info:
        entries["Region"] = ",".join(map(str, info["region"]))
    for key, name in _NUMBERS.items():
        if key in info:
            entries[name] = str(info[key])
    if chain is not None:
        entries["Chain"] = visible(chain, _NAME)
    if simulated is not None:
        entries["Simulated"] = "yes" if simulated else "no"
    return entries


def _reduce_colours(image: Image.Image) -> Image.Image:
    """Convert an image with few colours to a palette; every pixel keeps its colour and opacity."""
    if image.mode != "RGBA":
        return image
    pixels = np.asarray(image).view(">u4")[..., 0]
    palette, index = np.unique(pixels, return_inverse=True)
    if len(palette) > PALETTE:
        return image
    small = Image.fromarray(index.reshape(pixels.shape).astype(np.uint8))
    channels = palette.view(np.uint8).reshape(-1, 4)
    small.putpalette(channels[:, :3].tobytes())
    small.info = {**image.info, "transparency": channels[:, 3].tobytes()}
    return small


@contextmanager
def write_atomically(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside the target, which is renamed to the target at the end."""
    if not target.parent.is_dir():
        raise UsageError(
            f"the folder {str(target.parent)!r} does not exist", hint="Create it first."
        )
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        yield part
        part.replace(target)
    except OSError as error:
        raise DatasetError(f"{str(target)!r} cannot be written: {error}") from error
    finally:
        part.unlink(missing_ok=True)
