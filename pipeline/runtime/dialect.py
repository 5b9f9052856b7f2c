"""Tells source that only a newer Python parses from source that no Python parses."""

from __future__ import annotations

import ast
import re
import sys
import warnings

_STRING_START = re.compile(r"(?i)(?<![\w])([rbuft]{0,2})('''|\"\"\"|'|\")")
_NAME = re.compile(r"\w+")
_NAMED_CHARACTER = re.compile(r"\\N\{[^}\n]+\}")
_OPENING, _CLOSING = "([{", ")]}"


def needs_newer_python(source: str) -> str | None:
    """The first version of Python that accepts the source, if it is newer than this one and the reason is known.

    Known is the f-string grammar of Python 3.12 (PEP 701): quotes of the same kind, backslashes, comments and line
    ends inside the braces. Every f-string is replaced by a plain string, and what was in its braces parsed on its
    own; if all of it parses here, f-strings were the only thing wrong. Other new syntax (`type` statements, type
    parameters) is not recognised.
    """
    if sys.version_info >= (3, 12):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the strings
            ast.parse(_Rewriter(source).rewritten())
    except (SyntaxError, ValueError, RecursionError):
        return None
    return "3.12"


class _Rewriter:
    """Reads source as Python 3.12 does, as far as strings go, and replaces f-strings by plain ones."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0

    def rewritten(self) -> str:
        """The source without f-strings. SyntaxError for a string that is not closed, or braces that do not parse."""
        return self._code(until=None)

    def _code(self, until: str | None) -> str:
        """Code up to the end of the source, or to a character of `until` outside all brackets and strings."""
        out: list[str] = []
        depth = 0
        while self._at < len(self._source):
            character = self._source[self._at]
            string = _STRING_START.match(self._source, self._at)
            if string:
                out.append(self._string(string))
                continue
            if character == "#":
                self._at = end if (end := self._source.find("\n", self._at)) >= 0 else len(self._source)
                continue
            if until is not None and depth == 0 and character in until and not self._is_comparison(character):
                return "".join(out)
            depth += (character in _OPENING) - (character in _CLOSING)
            name = _NAME.match(self._source, self._at)  # a name may end in what looks like a prefix
            piece = name.group() if name else character
            out.append(piece)
            self._at += len(piece)
        if until is not None:
            raise SyntaxError("an f-string's braces are not closed")
        return "".join(out)

    def _is_comparison(self, character: str) -> bool:
        """Whether this is the first or last character of an operator such as `!=` or `==` in an expression."""
        around = self._source[self._at - 1 : self._at + 2]
        return character in "!=" and (around[1:] in ("!=", "==") or around[:2] in ("!=", "==", "<=", ">="))

    def _string(self, start: re.Match[str]) -> str:
        prefix, quote = start.group(1).lower(), start.group(2)
        self._at = start.end()
        if "f" not in prefix:
            begin = start.start()
            self._skip_plain(quote, raw="r" in prefix)
            return self._source[begin : self._at]
        self._skip_fields(quote, raw="r" in prefix)
        return "''"

    def _skip_plain(self, quote: str, *, raw: bool) -> None:
        while not self._source.startswith(quote, self._at):
            if self._at >= len(self._source) or (len(quote) == 1 and self._source[self._at] == "\n"):
                raise SyntaxError("a string is not closed")
            self._at += 2 if self._source[self._at] == "\\" else 1
        self._at += len(quote)

    def _skip_fields(self, quote: str, *, raw: bool, spec: bool = False) -> None:
        """Go past an f-string's closing quote (or up to the brace that closes a format spec), checking its fields."""
        while spec or not self._source.startswith(quote, self._at):
            if self._at >= len(self._source):
                raise SyntaxError("an f-string is not closed")
            character = self._source[self._at]
            if spec and character == "}":
                return
            if not spec and self._source[self._at : self._at + 2] in ("{{", "}}"):
                self._at += 2
            elif character == "{":
                self._skip_field(quote, raw=raw)
            elif character == "}" or (len(quote) == 1 and character == "\n"):
                raise SyntaxError("a brace or an f-string is not closed")
            elif character == "\\" and not raw:
                self._skip_escape()
            else:
                self._at += 1
        self._at += len(quote)

    def _skip_escape(self) -> None:
        named = _NAMED_CHARACTER.match(self._source, self._at)
        if named:
            self._at = named.end()
        else:
            self._at += 1 if self._source[self._at + 1 : self._at + 2] in ("{", "}") else 2

    def _skip_field(self, quote: str, *, raw: bool) -> None:
        self._at += 1
        expression = self._code(until="!:=}")
        if not expression.strip():
            raise SyntaxError("an f-string's braces are empty")
        ast.parse(f"({expression}\n)")
        if self._source[self._at] == "=":
            self._at += 1
            while self._source[self._at : self._at + 1].isspace():
                self._at += 1
        if self._source[self._at : self._at + 1] == "!":
            self._at += 2
        if self._source[self._at : self._at + 1] == ":":
            self._at += 1
            self._skip_fields(quote, raw=raw, spec=True)
        if self._source[self._at : self._at + 1] != "}":
            raise SyntaxError("an f-string's braces are not closed")
        self._at += 1
