"""Queues of messages to be sent, one for each stream, with the answers for which a message has to wait.

gRPC takes messages from an outbox in a thread of its own. Messages of one stream leave in order. Between streams there
is no order on the wire, and the scheduler refuses an ask that arrives before its application; so a message waits until
the scheduler has answered for the applications and nodes to which it refers (`Unanswered`).
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable

Name = tuple[str, str]
"""Identifies a new object for which an answer is due: "application" or "node", and its id."""

MESSAGES_MAX = 64
"""Messages queued on a stream before a further call of `put` blocks."""


class Unanswered:
    """New applications and nodes that were sent but not answered yet. All outboxes of a registration share one."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.gone = False
        self._names: Counter[Name] = Counter()

    def add(self, names: Iterable[Name]) -> None:
        """Note that these are being sent."""
        with self.changed:
            self._names.update(names)

    def answered(self, names: Iterable[Name]) -> None:
        """Note that the scheduler accepted or rejected these, and wake the outboxes."""
        with self.changed:
            for name in names:
                if self._names[name] > 1:
                    self._names[name] -= 1
                else:
                    del self._names[name]
            self.changed.notify_all()

    def among(self, names: Iterable[Name]) -> frozenset[Name]:
        """Return those of the names that are not answered yet."""
        with self.changed:
            return frozenset(name for name in names if name in self._names) if self._names else frozenset()

    def give_up(self) -> None:
        """End all waiting, for the connection is lost and no answer will come."""
        with self.changed:
            self.gone = True
            self.changed.notify_all()

    def still(self, names: frozenset[Name]) -> bool:
        """Whether any of these is not answered yet. The caller holds `changed`."""
        return any(name in self._names for name in names)


class Outbox:
    """The messages of one stream, as the iterator that gRPC reads."""

    def __init__(self, unanswered: Unanswered) -> None:
        self._unanswered = unanswered
        self._changed = unanswered.changed
        self._messages: deque[tuple[bytes, frozenset[Name]]] = deque()
        self._closed = False

    def put(self, data: bytes, needs: frozenset[Name], *, wait: bool) -> None:
        """Queue a message, which is sent in its turn, when all in `needs` are answered, or dropped with the connection.

        `wait`: block while `MESSAGES_MAX` messages are queued.
        """
        with self._changed:
            while wait and len(self._messages) >= MESSAGES_MAX and not self._unanswered.gone:
                self._changed.wait()
            self._messages.append((data, needs))
            self._changed.notify_all()

    def close(self) -> None:
        """End the stream after the queued messages."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __iter__(self) -> Outbox:
        return self

    def __next__(self) -> bytes:
        """Wait for the next message that may be sent, and return it; the iteration ends with the connection."""
        with self._changed:
            while not self._unanswered.gone:
                if self._messages:
                    # Only the first one, even if it has to wait: messages of a stream leave in order.
                    data, needs = self._messages[0]
                    if not self._unanswered.still(needs):
                        self._messages.popleft()
                        self._changed.notify_all()
                        return data
                elif self._closed:
                    break
                self._changed.wait()
            raise StopIteration
