"""Runs generated environments: fast, isolated, sandboxed."""
