"""Looking up the groups of a user in the operating system.

The operating system may ask files, LDAP, or other sources that the machine is set up with. `os.getgrouplist` would hold
Python's interpreter lock all that time, and so stop the whole process; the same function of the C library, called by
ctypes, does not.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

MOST = 1 << 16
"""Groups of a user at most; it is also what Linux allows."""


class GroupsError(LookupError):
    """The groups of a user cannot be found; the text says why."""


def os_groups(user: str) -> tuple[str, ...]:
    """Return the names of the user's groups, the primary one first; of a group without a name, its number.

    Source: docs/spec/config.md, section 12.1.

    Raises:
        GroupsError: the user is unknown, or the operating system fails.
    """
    where = f"groups of user {user[:80]!r} cannot be found:"
    try:
        import grp  # noqa: PLC0415  not available on Windows
        import pwd  # noqa: PLC0415
    except ImportError:
        raise GroupsError(f"{where} this operating system keeps none") from None
    try:
        entry = pwd.getpwnam(user)
        numbers = _numbers(entry.pw_name, entry.pw_gid)
    except (KeyError, ValueError):  # ValueError: a name with a null character, for example
        raise GroupsError(f"{where} the user is unknown") from None
    except OSError as error:
        raise GroupsError(f"{where} {error.strerror}") from None

    def name(number: int) -> str:
        try:
            return grp.getgrgid(number).gr_name
        except (KeyError, OSError):
            return str(number)

    return tuple(dict.fromkeys(map(name, dict.fromkeys((entry.pw_gid, *numbers)))))


def _numbers(user: str, primary: int) -> list[int]:
    """Return the numbers of a user's groups. The array for them grows until it is long enough, up to `MOST`."""
    ask = _getgrouplist()
    room = 64
    while True:
        count = ctypes.c_int(room)
        found = (ctypes.c_uint32 * room)()
        if ask(user.encode(), primary, found, ctypes.byref(count)) >= 0:
            return list(found[: count.value])
        if room >= MOST:
            raise OSError(0, f"the user is in more than {MOST} groups")
        room = min(max(count.value, 2 * room), MOST)


@functools.cache
def _getgrouplist() -> Callable[..., int]:
    function = ctypes.CDLL(None, use_errno=True).getgrouplist
    function.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p]
    function.restype = ctypes.c_int
    return function
