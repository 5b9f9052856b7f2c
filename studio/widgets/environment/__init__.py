"""The details of one environment, a file a tab."""
