"""A table of users and their groups, in a file that may change while it is in use.

    ann: [dev, ops]
    bob: [dev]
    eve: []            # one group, with the name of the user, as without any resolver

The file is YAML. The order of a user's groups counts: usage is charged to the first one that has a limit. A file that
has changed is checked as a whole before it counts: while it cannot be read, or has an error, the old table stays.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from licorne._files import NoFileError, file_bytes
from licorne.config.nodes import MAX_BYTES, YamlNode, behind, compose
from licorne.config.problems import Notes
from licorne.config.scalars import is_null
from licorne.grpc.service.settings import SettingError
from licorne.host.log import Log, no_log

LOOK_S = 1.0
"""Seconds between two looks at whether the file has changed."""
Users = dict[str, tuple[str, ...]]
_Stamp = tuple[int, int, int]


class Table:
    """The table in one file, read when it is made and again whenever it has changed.

    Raises:
        SettingError: the file cannot be read, or is no such table; the text names line and rule.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic, log: Log | None = None) -> None:
        self.path = path
        self._clock = clock
        self._log = log or no_log()
        self._lock = threading.Lock()
        self._stamp = self._stat()
        self.users = read_table(self._text(), str(path))
        self._looked = clock()

    @property
    def fresh(self) -> bool:
        """Whether the file was checked for changes within the last `LOOK_S` seconds."""
        return self._clock() - self._looked < LOOK_S

    def refresh(self) -> None:
        """Read the file again if it has changed. It may block, so it is for a thread; errors are logged, not raised.

        If another thread is reading the file, this returns at once, and the table stays as it is for now.
        """
        if self.fresh or not self._lock.acquire(blocking=False):
            return
        try:
            self._looked = self._clock()
            try:
                stamp = self._stat()
                if stamp != self._stamp:
                    self.users = read_table(self._text(), str(self.path))
                    self._log.info("group table read", users=len(self.users))
                    self._stamp = stamp
            except SettingError as error:
                self._log.warning("group table refused, the old one stays", reason=str(error))
        finally:
            self._lock.release()

    def _stat(self) -> _Stamp:
        try:
            found = self.path.stat()
        except OSError as error:
            raise SettingError(f"group table {self.path}: {error.strerror}") from None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _text(self) -> str:
        try:
            data = file_bytes(self.path, MAX_BYTES)
        except NoFileError:
            raise SettingError(f"group table {self.path}: is no regular file") from None
        except OSError as error:
            raise SettingError(f"group table {self.path}: {error.strerror}") from None
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise SettingError(f"group table {self.path}: is not UTF-8 text (byte {error.start})") from None


def read_table(text: str, name: str = "table") -> Users:
    """Parse the text of a table: the groups of each user.

    Raises:
        SettingError: the text is no such table; the message names line and rule.
    """
    notes = Notes(name)
    root = compose(text, notes)
    faults = notes.report().faults
    if faults:
        raise SettingError(f"group table {faults[0]}")
    users: Users = {}
    if root is None or is_null(root):
        return users
    if root.kind != "mapping":
        raise _fault(name, root, "must be lines of `user: [group, ...]`")
    for key, value in zip(root.items[::2], root.items[1::2], strict=True):
        if key.kind != "scalar" or not key.text:
            raise _fault(name, key, "a user must be a name")
        if key.text in users:
            raise _fault(name, key, f"user {_short(key)} is there already")
        users[key.text] = _groups(name, key, behind(value)) or (key.text,)
    return users


def _groups(name: str, user: YamlNode, value: YamlNode) -> tuple[str, ...]:
    if is_null(value):
        return ()
    if value.kind != "sequence":
        raise _fault(name, value, f"the groups of user {_short(user)} must be a list, as in [dev, ops]")
    groups: dict[str, None] = {}
    for item in map(behind, value.items):
        if item.kind != "scalar" or not item.text:
            raise _fault(name, item, f"a group of user {_short(user)} must be a name")
        groups[item.text] = None
    return tuple(groups)


def _short(node: YamlNode) -> str:
    return repr(node.text[:80])


def _fault(name: str, node: YamlNode, message: str) -> SettingError:
    return SettingError(f"group table {name}:{node.line}:{node.column}: {message}")


__all__ = ["LOOK_S", "Table", "Users", "read_table"]
