"""Does an environment run, and can its tasks be solved? Facts, each with its evidence and a remedy."""
