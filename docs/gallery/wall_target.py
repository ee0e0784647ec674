"""The plan of a picture, its progress, and the wall once our blocks have painted it."""

import polars as pl
from PIL import Image, ImageDraw

import beaconframes as bf

with bf.open():
    pixels = bf.load_graffiti_wall(since=0)

badge = Image.new("RGBA", (24, 13))
draw = ImageDraw.Draw(badge)
draw.ellipse((0, 0, 23, 12), fill="#3f90da")
draw.ellipse((7, 3, 16, 9), fill="#ffa90e")

# One row per pixel, in the order to paint them, with the graffiti that paints it.
plan = bf.wall.plan(pixels, badge, at=(488, 422))
print(plan.head(3))
print(bf.wall.progress(pixels, badge, at=(488, 422), every="1d"))

next_slot = pixels["slot"].max() + 1
todo = bf.wall.diff(pixels, badge, at=(488, 422))  # those that are not right yet
writes = todo.with_row_index("slot", offset=next_slot).cast({"slot": pl.Int64})
later = pl.concat([pixels, writes], how="diagonal").select("slot", "x", "y", "color")
image = bf.wall.render(later, region=(440, 415, 559, 479), scale=6, background="white")
