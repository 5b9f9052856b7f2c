"""One client for every OpenAI-compatible model server: streaming, structured output, retries, budget, kept replies.

`Client.ask` is the only way this project talks to a model; what goes wrong comes back as a `ModelFault`, whose text
says what happened and what to do.
"""
