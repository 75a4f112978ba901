"""What waits to be sent on one stream, and what it waits for.

gRPC takes messages from here in a thread of its own. Messages of one stream leave in order. Between streams there is no
order on the wire, and an ask that arrives before its application is refused; so a message may have to wait until the
scheduler has answered for what it refers to (`Unanswered`).
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable

Name = tuple[str, str]
"""What is to be answered: "application" or "node", and its id."""

MESSAGES_MAX = 64
"""How many messages may wait on a stream before who sends more must wait too."""


class Unanswered:
    """New applications and nodes that were sent, and not answered yet. All outboxes of a registration share it."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.gone = False
        self._names: Counter[Name] = Counter()

    def add(self, names: Iterable[Name]) -> None:
        """These are being sent."""
        with self.changed:
            self._names.update(names)

    def answered(self, names: Iterable[Name]) -> None:
        """The scheduler took or refused these."""
        with self.changed:
            for name in names:
                if self._names[name] > 1:
                    self._names[name] -= 1
                else:
                    del self._names[name]
            self.changed.notify_all()

    def among(self, names: Iterable[Name]) -> frozenset[Name]:
        """Which of these are not answered."""
        with self.changed:
            return frozenset(name for name in names if name in self._names) if self._names else frozenset()

    def give_up(self) -> None:
        """The connection is lost: nothing will be answered, and nobody is to wait any more."""
        with self.changed:
            self.gone = True
            self.changed.notify_all()

    def still(self, names: frozenset[Name]) -> bool:
        """Is one of these not answered? To be asked with `changed` held."""
        return any(name in self._names for name in names)


class Outbox:
    """The messages of one stream; an iterator for gRPC."""

    def __init__(self, unanswered: Unanswered) -> None:
        self._unanswered = unanswered
        self._changed = unanswered.changed
        self._messages: deque[tuple[bytes, frozenset[Name]]] = deque()
        self._closed = False

    def put(self, data: bytes, needs: frozenset[Name], *, wait: bool) -> None:
        """Send this when its turn has come, and all that it needs is answered. Dropped if the connection is lost."""
        with self._changed:
            while wait and len(self._messages) >= MESSAGES_MAX and not self._unanswered.gone:
                self._changed.wait()
            self._messages.append((data, needs))
            self._changed.notify_all()

    def close(self) -> None:
        """Nothing follows what is in here."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __iter__(self) -> Outbox:
        return self

    def __next__(self) -> bytes:
        """The next message; waits for it."""
        with self._changed:
            while not self._unanswered.gone:
                if self._messages:
                    data, needs = self._messages[0]
                    if not self._unanswered.still(needs):
                        self._messages.popleft()
                        self._changed.notify_all()
                        return data
                elif self._closed:
                    break
                self._changed.wait()
            raise StopIteration
