"""The five stages that turn a seed into an environment: each a prompt, a way to read the reply, and checks that run it.

The stages are those of AWM (arXiv 2602.10090, section 3); the prompts, in `prompts/`, are this project's own.
"""
