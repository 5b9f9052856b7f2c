"""One module a schema change, numbered, in order."""
