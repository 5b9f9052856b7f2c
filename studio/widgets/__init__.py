"""What more than one screen shows: grids, source text, forms, diffs."""
