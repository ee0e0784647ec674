"""The wall as an image without axes, one square per pixel."""

import beaconframes as bf

with bf.open():
    pixels = bf.load_graffiti_wall(since=0)

image = bf.wall.render(pixels, region=(400, 440, 599, 559), scale=4, background="white")
bf.wall.save(image, "wall.png", chain="mainnet", simulated=True)
