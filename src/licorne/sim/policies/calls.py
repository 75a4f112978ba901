"""Call the methods of policies: within their time, with a check of what they answer, and an error that says what is wrong."""

from __future__ import annotations

from math import isnan
from numbers import Real
from typing import Any

from licorne.sim.policies.interface import Key, PolicyError
from licorne.sim.policies.loading import Loaded, described
from licorne.sim.policies.watch import TookTooLongError, Watch, named

KEY = "a number that is not NaN, a text, or a tuple of these"
_Form = type | tuple[type, ...]


class Caller:
    """Calls one method of a policy, and words the errors about it; `expected` says what the method is to return."""

    def __init__(self, loaded: Loaded, method: str, expected: str, watch: Watch) -> None:
        self._policy = loaded.policy
        self._name = loaded.name
        self._method = method
        self._expected = expected
        self._function = named(f"policy {loaded.name}: {method}", getattr(loaded.policy, method))
        self._watch = watch
        self._form: _Form | None = None

    def __call__(self, now_s: float, *given: object) -> Any:  # noqa: ANN401  # whatever the policy answers, to be checked
        """Call the method, and return what it returns.

        Raises:
            PolicyError: it raised, or took too long.
        """
        watch = self._watch
        self._policy.now_s = now_s
        try:
            watch.restart()
            watch.running = True
            return self._function(*given)
        except TookTooLongError:
            watch.running = False  # first of all: the next tick would raise here
            raise watch.too_long(self._call(given)) from None
        except (Exception, SystemExit) as error:
            raise PolicyError(
                f"{self._call(given)} raised {described(error)}; expected was {self._expected}"
            ) from error
        finally:
            watch.running = False

    def key(self, now_s: float, *given: object) -> Key:
        """Call the method for a key, which can be compared with all keys that it returned before.

        Raises:
            PolicyError: it raised, took too long, or returned something else.
        """
        found = self(now_s, *given)
        form = _form(found)
        if form is None:
            raise self.wrong(found, given)
        if self._form is None:
            self._form = form
        elif form != self._form:
            raise self.wrong(found, given, f", like {_words(self._form)} that it answered before")
        key: Key = found
        return key

    def wrong(self, answer: object, given: tuple[object, ...], more: str = "") -> PolicyError:
        """Return the error of an answer that cannot be used."""
        text = repr(answer)
        text = text if len(text) <= 80 else text[:79] + "…"
        return PolicyError(f"{self._call(given)} answered {text}; expected was {self._expected}{more}")

    def _call(self, given: tuple[object, ...]) -> str:
        return f"policy {self._name}: {self._method}({', '.join(map(_short, given))})"


def _short(given: object) -> str:
    text = repr(given)
    return text if len(text) <= 60 else text[:59] + "…"


def _form(key: object) -> _Form | None:
    """Return what keys must have in common to be compared; None for what is no key."""
    if isinstance(key, tuple):
        parts = [form for part in key if isinstance(form := _form(part), type)]
        return tuple(parts) if len(parts) == len(key) else None
    if isinstance(key, str):
        return str
    if isinstance(key, int | float | Real):  # what numpy returns is a Real
        return None if isnan(key) else float
    return None


def _words(form: _Form) -> str:
    if isinstance(form, tuple):
        return f"a tuple of {len(form)}: {', '.join(map(_words, form))}"
    return "a text" if form is str else "a number"
