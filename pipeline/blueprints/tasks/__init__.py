"""Tasks: what they mean for the rows at hand, how they are solved and said, and which are chosen."""
