"""Participation by epoch, for all seats and for selected ones."""

import beaconframes as bf

with bf.open():
    blocks = bf.load_epoch_slots(since=-80)
    period = blocks["epoch"].max() // 256
    seats = bf.load_sync_committees(period).head(20)

ax = bf.plot.sync_participation(blocks, seats, every="epoch")
figure = bf.interactive.sync_participation(blocks, seats, every="epoch")
