"""Watching the files of settings and queue configurations while the service runs, and applying their changes.

Changed files are read in a thread, checked as a whole, and applied on the loop. The files are checked once a second
(`os.stat`, in a thread; when Kubernetes swaps its symbolic link, the inode changes). A changed file is read when two
checks in a row find it equal, so that a file which is just being written is not read half. SIGHUP reads all files at
once.

A configuration that a resource manager brought itself is never changed by a file. One that REST has set holds until the
file changes next. If a file is refused or has vanished, the old configuration stays in force. Each outcome is a line in
the log, which names line, column and rule, but no value of a queue configuration.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from licorne.core.api import ConfigurationError
from licorne.host.log import Levels, Log, named
from licorne.host.threads import Threads
from licorne.si import v19

from . import building
from .files import Mark, mark
from .loaded import Loaded, load_again
from .queues import EVERYBODY, Groups

if TYPE_CHECKING:
    from licorne.grpc.service.server import Service
    from licorne.grpc.service.session import Session

INTERVAL_S = 1.0


class Changes:
    """The task that watches the files of a service and applies their changes.

    Parameters:
        service: the service to be changed.
        loaded: the settings and queue configurations with which it was started.
        groups: the policy groups that its scheduler uses.
        levels: the levels of the log.
        interval_s: seconds between two checks of the files.
    """

    def __init__(
        self,
        service: Service,
        loaded: Loaded,
        groups: Groups,
        levels: Levels,
        log: Log,
        *,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self.loaded = loaded
        self._service = service
        self._groups = groups
        self._levels = levels
        self._log = named(log, "core.config")
        self._interval_s = interval_s
        self._asked = asyncio.Event()
        self._files = Threads(1, "licorne-files")  # of its own: a file system may hang
        service.prepared.pin(source.configuration for source in loaded.sources.values())
        for warning in loaded.values.warnings:
            self._log.warning("setting ignored", reason=warning)

    def again(self) -> None:
        """Read everything again at once (SIGHUP)."""
        self._asked.set()

    async def run(self) -> None:
        """Watch the files until cancelled."""
        taken = pending = self.loaded.marks  # taken before the first reading, so a change during it is not missed
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s if self._watching() else None):
                    await self._asked.wait()
            asked = self._asked.is_set()
            self._asked.clear()
            now = await self._marks()
            if asked or (now != taken and now == pending):
                try:
                    await self.look()
                except Exception:  # noqa: BLE001  a bug, or a failing file system: the old values stay
                    self._log.exception("the configuration could not be read again")
                taken = now
            pending = now

    def _watching(self) -> bool:
        return bool(self.loaded.values.get("service.enableConfigHotRefresh"))

    async def _marks(self) -> dict[Path, Mark]:
        files = self.loaded.files()
        return await self._files.run(lambda: {file: mark(file) for file in files}) if files else {}

    async def look(self) -> None:
        """Read everything again, and apply what has changed."""
        old = self.loaded
        new = await self._files.run(partial(load_again, old, self._service.checks.read_queues))
        for refusal in new.refused:
            reason = {} if refusal.fields else {"reason": refusal.text.replace("\n", "; ")}
            self._log.warning(
                "configuration refused, the old one stays", file=refusal.label, **refusal.fields, **reason
            )
        if new.restart and new.restart != old.restart:
            self._log.warning("a change takes effect at restart", settings=new.restart)
        self.loaded = new
        keys = self._take_settings(old, new)
        names = [name for name, source in new.sources.items() if source is not old.sources.get(name)]
        if not keys and not names:
            if not new.refused and new.restart == old.restart:
                self._log.info("configuration read again, nothing has changed")
            return
        self._service.prepared.pin(source.configuration for source in new.sources.values())
        self._groups.replace(new.sources)
        await self._reload(old, new, resettled=new.values.texts() != old.values.texts())

    def _take_settings(self, old: Loaded, new: Loaded) -> list[str]:
        """Apply the settings that take effect without a restart. Returns the keys that have changed."""
        before, after = old.values, new.values
        keys = after.changed(before)
        for warning in after.warnings:
            if warning not in before.warnings:
                self._log.warning("setting ignored", reason=warning)
        if not keys:
            return []
        building.set_levels(self._levels, after)
        self._service.retune(building.service_settings(after), after.texts())
        self._log.info("settings changed", settings=keys)
        return keys

    # -- resource managers -----------------------------------------------------------------------------

    async def _reload(self, old: Loaded, new: Loaded, *, resettled: bool) -> None:
        sessions = self._service.sessions.by_id
        applied: dict[str, list[str]] = {}
        for rm_id in sorted(sessions):
            session = sessions.get(rm_id)
            if session is None:
                continue
            name = self._group(session)
            if name is not None and new.sources[name] is not old.sources.get(name):
                before = old.sources.get(name)
                self._apply(session, new.sources[name].label, None if before is None else before.text, applied)
            elif resettled:
                self._settle(session)
            await asyncio.sleep(0)
        for name, source in new.sources.items():
            if source is not old.sources.get(name) and source.label not in applied:
                applied[source.label] = []
        for label, managers in applied.items():
            self._log.info("queue configuration applied", file=label, managers=len(managers))
        self._service.sessions.wake.set()

    def _group(self, session: Session) -> str | None:
        """Return the policy group, or `EVERYBODY`, whose configuration a session has.

        None if it brought its own, or has the built-in one.
        """
        if session.request.config:
            return None
        name = session.request.policy_group
        if name in self._groups.sources:
            return name
        return EVERYBODY if EVERYBODY in self._groups.sources else None

    def _apply(self, session: Session, label: str, before: str | None, applied: dict[str, list[str]]) -> None:
        manager = self._service.api.cluster.managers[session.rm_id]
        own = before is not None and manager.configuration.text != before
        try:
            self._service.api.reload_configuration(session.rm_id)
        except ConfigurationError:  # it contradicts the settings that the registration brought
            session.log.warning("configuration refused, the old one stays", file=label)
            return
        except Exception:  # a bug of the core, whose state of this resource manager can no longer be trusted
            session.log.exception("a configuration could not be applied", file=label)
            self._service.sessions.stop(session, "an internal error", resync=True)
            return
        applied.setdefault(label, []).append(session.rm_id)
        if own:
            session.log.warning("a configuration that REST had set is replaced by that of the file", file=label)

    def _settle(self, session: Session) -> None:
        """Apply changed scheduler settings to a session, by loading its unchanged configuration again."""
        api, rm_id = self._service.api, session.rm_id
        text = api.cluster.managers[rm_id].configuration.text
        try:
            api.update_configuration(v19.UpdateConfigurationRequest(rm_id=rm_id, config=text))
        except ConfigurationError:
            session.log.warning("settings refused, the old ones stay")
