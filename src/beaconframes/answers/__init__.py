"""The rows of a dataset that a call selects, as frames: no requests, no JSON, no pages."""
