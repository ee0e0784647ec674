"""Members of a sync committee, ranked by participation."""

import beaconframes as bf

with bf.open():
    blocks = bf.load_epoch_slots(since=-60)
    committee = bf.load_sync_committees(blocks["epoch"].max() // 256)

ax = bf.plot.sync_members(blocks, committee)
figure = bf.interactive.sync_members(blocks, committee)
