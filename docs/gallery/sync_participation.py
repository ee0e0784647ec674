"""Participation of the sync committee by slot, with missed slots."""

import beaconframes as bf

with bf.open():
    blocks = bf.load_epoch_slots(since=-16)

ax = bf.plot.sync_participation(blocks)
figure = bf.interactive.sync_participation(blocks)
