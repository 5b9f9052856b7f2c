"""What an evaluation looks like: bars, tasks, comparisons, and the suites there are."""
