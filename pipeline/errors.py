"""What can go wrong because of what a person gave us."""

from __future__ import annotations


class UserError(Exception):
    """Something the person can put right: bad input, a missing file, an unknown name.

    The message is a sentence that names the file, line or field and says what to do. The command line
    prints it without a traceback and exits with code 2; the studio shows it as a notification.
    """
