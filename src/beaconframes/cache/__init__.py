"""The local store of final rows, read before anything is requested."""
