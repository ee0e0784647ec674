"""Signatures of a sync committee: one row per member, one column per slot."""

import beaconframes as bf

with bf.open():
    blocks = bf.load_epoch_slots(since=-6)
    committee = bf.load_sync_committees(blocks["epoch"].max() // 256).head(40)

ax = bf.plot.sync_members(blocks, committee, show="matrix")
figure = bf.interactive.sync_members(blocks, committee, show="matrix")
