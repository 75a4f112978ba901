"""Parses YAML text into a stream of events: ruamel's reader, scanner and parser, with the original's habits.

The original's parser descends from libyaml, as ruamel's does, but the two differ in details that decide whether a text
is accepted: tabs after a colon, `?` within a word in braces, names of anchors, directives. ruamel comes nearest as
YAML 1.1 (the original refuses a document that declares 1.2), and the methods below close the rest of the gap.

The other purpose is speed. ruamel looks for the next token several times for each event and scans texts letter by
letter; here a token is looked for once, and blanks and words are taken whole by a regular expression. The difference is
a third of the time of a large configuration, and the reason why three methods repeat work of their base class.

ruamel's parts refer to each other. Here they are one object, which drops its references to itself when it is closed
(`Events.close`): its memory is then freed at once, and does not wait for the garbage collector, which a service rarely
runs in full.
"""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, Final

from ruamel.yaml.parser import Parser, ParserError
from ruamel.yaml.reader import Reader
from ruamel.yaml.scanner import Scanner, ScannerError
from ruamel.yaml.tokens import ScalarToken

_BREAKS: Final = "\r\n\x85\u2028\u2029"
LINE_BREAK: Final = re.compile(f"\r\n|[{_BREAKS}]")
_BLANKS_OR_END: Final = " \t\0" + _BREAKS
_SPACES: Final = re.compile(r" *")
_SPACES_AND_TABS: Final = re.compile(r"[ \t]*")
_COMMENT: Final = re.compile(rf"[^\0{_BREAKS}]*")
_ANCHOR: Final = re.compile(r"[0-9A-Za-z_-]*")
_AFTER_ANCHOR: Final = _BLANKS_OR_END + "?:,]}%@`"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# A word of an unquoted text. In braces and brackets it ends at an indicator; a colon ends it if a blank follows.
_WORD: Final = re.compile(rf"(?:[^{_BLANKS_OR_END}:]|:(?![{_BLANKS_OR_END}]))+")
_WORD_IN_FLOW: Final = re.compile(rf"(?:[^{_BLANKS_OR_END}:,?\[\]{{}}]|:(?![{_BLANKS_OR_END}]))+")


class Mark:
    """A place in the text; index, line and column count from 0."""

    __slots__ = ("column", "index", "line")

    def __init__(self, index: int, line: int, column: int) -> None:
        self.index = index
        self.line = line
        self.column = column


class Events(Reader, Scanner, Parser):
    """An iterator of the events of a text; it ends with the text, or raises an error of ruamel's."""

    processing_version = (1, 1)
    scanner_processing_version = (1, 1)
    forward = Reader.forward_1_1

    # The original has no escape for a solidus.
    ESCAPE_REPLACEMENTS = {key: text for key, text in Scanner.ESCAPE_REPLACEMENTS.items() if key != "/"}  # noqa: RUF012

    reader: Any = None
    scanner: Any = None
    resolver: Any = None

    def __init__(self, text: str) -> None:
        self._is_ready = False
        Reader.__init__(self, text)  # raises if the text has a character that is not allowed
        self.reader = self.scanner = self.resolver = self
        Scanner.__init__(self)
        Parser.__init__(self, None)
        # ruamel reads these attributes of its loader: comments are not kept, and versions are noted here.
        self.loader = SimpleNamespace(comment_handling=None, doc_infos=[SimpleNamespace()])

    def close(self) -> None:
        """Drop all references of this object to itself; nothing can be read after that.

        The parser's states are methods of this object, so they are dropped too.
        """
        self.reader = self.scanner = self.resolver = self.state = None
        self.states.clear()

    def __iter__(self) -> Events:
        return self

    def __next__(self) -> Any:
        if not self.check_event():
            raise StopIteration
        return self.get_event()

    # -- tokens: found once -----------------------------------------------------------------------------

    def check_token(self, *choices: Any) -> bool:
        """Return whether the next token is of one of these kinds; without kinds, whether there is a token."""
        if not self._is_ready:
            self._get_ready()
        return bool(self.tokens) and (not choices or isinstance(self.tokens[0], choices))

    def peek_token(self) -> Any:
        """Return the next token without consuming it."""
        if not self._is_ready:
            self._get_ready()
        return self.tokens[0] if self.tokens else None

    def get_token(self) -> Any:
        """Consume and return the next token."""
        if not self._is_ready:
            self._get_ready()
        self._is_ready = False
        if not self.tokens:
            return None
        self.tokens_taken += 1
        return self.tokens.pop(0)

    def _get_ready(self) -> None:
        while self.need_more_tokens():
            self.fetch_more_tokens()
        self._is_ready = True

    def stale_possible_simple_keys(self) -> None:
        """Drop the possible keys that are on an earlier line, or too long."""
        line, start = self.line, self.index - 1024
        for key in self.possible_simple_keys.values():
            if key.line != line or key.index < start:
                super().stale_possible_simple_keys()
                return

    def get_mark(self) -> Any:
        """Return the current place."""
        return Mark(self.index, self.line, self.column)

    # -- blanks and words: taken whole -------------------------------------------------------------------

    def _take(self, pattern: re.Pattern[str]) -> str:
        """Consume and return what the pattern matches here; it must not match a line break."""
        match = pattern.match(self.buffer, self.pointer)
        assert match is not None
        text = match[0]
        length = len(text)
        self.pointer += length
        self.index += length
        self.column += length - text.count("\ufeff")
        return text

    def scan_to_next_token(self) -> Any:
        """Skip blanks, comments and line breaks. A tab counts as a blank where no indentation can be meant."""
        while True:
            self._take(_SPACES_AND_TABS if self.flow_level or not self.allow_simple_key else _SPACES)
            if self.buffer[self.pointer] == "#":
                self._take(_COMMENT)
            if not self.scan_line_break():
                return
            if not self.flow_level:
                self.allow_simple_key = True

    def scan_plain(self) -> Any:
        """Scan a text without quotes: words, with the blanks and line breaks between them folded."""
        start = end = self.get_mark()
        indent = self.indent + 1
        chunks: list[str] = []
        between = ""
        is_first_in_line = False
        while not self._at_document_mark() and self.buffer[self.pointer] != "#":
            word = _WORD_IN_FLOW if self.flow_level else _WORD
            if word.match(self.buffer, self.pointer) is None:
                break
            self.allow_simple_key = False
            chunks += (between, self._take(word))
            end = self.get_mark()
            between, is_first_in_line = self._fold(indent, start)
            if not between or (not self.flow_level and self.column < indent):
                break
        if is_first_in_line:
            self.allow_simple_key = True
        return ScalarToken("".join(chunks), True, start, end)

    def _fold(self, indent: int, start: Any) -> tuple[str, bool]:
        """Fold the blanks and line breaks between two words; return the text, and whether a line begins after it."""
        blanks = self._take(_SPACES_AND_TABS)
        first_break = self.scan_line_break()
        if not first_break:
            return blanks, False
        breaks = ""
        while True:
            self._take(_SPACES)
            if self.buffer[self.pointer] == "\t":
                if self.column < indent:
                    message = "found a tab character where indentation is expected"
                    raise ScannerError("while scanning a plain scalar", start, message, self.get_mark())
                self._take(_SPACES_AND_TABS)
            line_break = self.scan_line_break()
            if not line_break:
                break
            breaks += line_break
        if first_break == "\n":
            return breaks or " ", True
        return first_break + breaks, True

    def _at_document_mark(self) -> bool:
        return self.column == 0 and self.prefix(3) in ("---", "...") and self.buffer[self.pointer + 3] in _BLANKS_OR_END

    # -- stricter ------------------------------------------------------------------------------------------

    def scan_directive(self) -> Any:
        """Scan a directive; any but `%YAML` and `%TAG` is an error."""
        token = super().scan_directive()
        if token.name not in ("YAML", "TAG"):
            raise ScannerError(None, None, f"found the unknown directive %{token.name}", token.start_mark)
        return token

    def process_directives(self) -> Any:
        """Process the directives before a document; any version but 1.1 is an error."""
        mark = self.peek_token().start_mark
        directives = super().process_directives()
        if directives[0] not in (None, (1, 1)):
            raise ParserError(None, None, "found a version of YAML other than 1.1", mark)
        return directives

    def scan_flow_scalar(self, style: Any) -> Any:
        """Scan a text in quotes; half of a surrogate pair is an error, even if it is escaped."""
        start = self.get_mark()
        try:
            token = super().scan_flow_scalar(style)
        except (ValueError, OverflowError):  # from chr()
            token = None
        if token is None or _SURROGATE.search(token.value):
            message = "found an escape that stands for no character"
            raise ScannerError("while scanning a double-quoted scalar", start, message, start)
        return token

    def scan_tag(self) -> Any:
        """Scan a tag; the handle `!!` without a name after it is an error."""
        token = super().scan_tag()
        if token.value == (None, "!!"):
            raise ScannerError("while scanning a tag", token.start_mark, "no name stands behind !!", token.start_mark)
        return token

    def scan_anchor(self, TokenClass: Any) -> Any:  # noqa: N803 - the base class names it
        """Scan an anchor or an alias, whose names are ASCII letters, digits, dashes and underlines."""
        start = self.get_mark()
        self.forward()
        name = self._take(_ANCHOR)
        if not name or self.buffer[self.pointer] not in _AFTER_ANCHOR:
            message = "an anchor has a name of letters, digits, dashes and underlines"
            raise ScannerError("while scanning an anchor", start, message, self.get_mark())
        return TokenClass(name, start, self.get_mark())
