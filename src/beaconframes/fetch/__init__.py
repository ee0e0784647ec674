"""Many requests: plan, pages, rows, completeness."""
