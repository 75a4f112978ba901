"""Certificates and tokens as they stand in files, checked: what is empty must never switch protection off."""

from __future__ import annotations


class SecurityError(ValueError):
    """An address, or the protection for it, is refused; the text says what to do."""


def pem_in(text: str, name: str, what: str) -> bytes:
    """Return the content of a PEM file. `name` is the file's, `what` its expected content, both for errors.

    Raises:
        SecurityError: the file is empty, as may happen while a certificate is renewed.
    """
    if not text.strip():
        raise SecurityError(f"{name}: is empty; give {what}")
    return text.encode()


def tokens_in(text: str, name: str) -> tuple[str, ...]:
    """Return the tokens of a file, one a line.

    Raises:
        SecurityError: there is none, or one has characters that a header cannot carry.
    """
    tokens = [line.strip() for line in text.splitlines() if line.strip()]
    if not tokens:
        raise SecurityError(f"{name}: holds no token; give one a line")
    return tuple(_checked(token, name) for token in tokens)


def token_in(text: str, name: str) -> str:
    """Return the one token of a file.

    Raises:
        SecurityError: the file is empty, or holds something else.
    """
    return _checked(text.strip(), name)


def _checked(token: str, name: str) -> str:
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise SecurityError(f"{name}: a token is a line of printable ASCII characters without spaces")
    return token
