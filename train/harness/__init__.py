"""The public benchmarks, run by their own harnesses: installed apart, started safely, read soberly.

BFCL, τ²-bench and MCP-Universe are never re-implemented here. `known` says which versions these are, `venvs` installs
them, `readiness` says what each needs, `presets` what can be run of them, and `harness_run` runs one.
"""
