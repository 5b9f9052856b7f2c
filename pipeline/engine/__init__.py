"""The synthesis with a model: every scenario flows through the stages alone, watched and steered from anywhere.

What happens is a log of events in the catalog; `board` folds it into what is true now, `commands` appends what people
want, and `engine` is the one process that acts on both. Killed at any moment, it goes on from the log.
"""
