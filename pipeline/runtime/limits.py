"""What one worker process may use, and how long each kind of request may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of every worker of a host.

    The defaults leave an honest generated program far from each of them: in the real environments a call takes
    3 ms, a program loads in 0.3 s, and 1,024 instances of five programs need 60 MB.
    """

    call_timeout_s: float = 10.0
    """Wall clock of one tool call."""
    load_timeout_s: float = 60.0
    """Wall clock of building a database, of loading a program's code, and of replaying an instance."""
    verify_timeout_s: float = 30.0
    """Wall clock of one verifier."""
    grace_s: float = 1.0
    """How much longer than its own timer the host waits for a worker before it kills it."""
    memory_mb: int = 1024
    """Address space a worker may add to what it starts with."""
    file_mb: int = 16
    """Size of a worker's private temporary folder, and so of any file in it."""
    open_files: int = 64
    """File descriptors a worker may hold."""
    reply_mb: int = 64
    """The largest reply; a larger one is an error of that call."""
