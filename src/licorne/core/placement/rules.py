"""The placement rules. A rule answers with a queue path, with no match, or with an error that ends the placement.

A rule knows nothing of other rules, except that it may ask a parent rule for the queue above its own. It asks the tree
only whether a queue exists and is a leaf; access and draining are checked by `licorne.core.placement.placer`. Rules are
immutable values, built once from the configuration, so an unusable list of rules is found before anything is replaced.

Two properties of rules are not obvious. A parent's own `create` decides whether *its* queue may be missing; the
child's does not help. And a name with dots is one queue below the parent (`a.b` becomes `a_dot_b`), unless it starts
with `root.`, which makes it a full path and leaves the parent rule out.

Sources: *Scheduler Placement Rules*; docs/spec/placement.md, sections 2 and 4.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, Protocol

from licorne.config.model import RuleConfig
from licorne.config.structure import QUEUE_NAME
from licorne.core.base.tags import tag

from .filters import Filter

ROOT: Final = "root"
RECOVERY_QUEUE: Final = "@recovery@"
RECOVERY_PATH: Final = f"{ROOT}.{RECOVERY_QUEUE}"
"""The queue of forced applications that no rule places; no other application may go there."""
DOT_REPLACEMENT: Final = "_dot_"
INVALID_QUEUE_NAME: Final = (
    "invalid queue name, max 64 characters consisting of alphanumeric characters "
    "and '-', '_', '#', '@', '/', ':' allowed"
)


class QueueLike(Protocol):
    """What placement needs to know of a queue."""

    @property
    def path(self) -> str:
        """The full path in lower case."""
        ...

    @property
    def is_leaf(self) -> bool:
        """Whether applications can run here; otherwise it has, or may have, queues below."""
        ...

    @property
    def draining(self) -> bool:
        """Whether it takes no new applications and is removed when it is empty."""
        ...

    def submit_allowed(self, user: str, groups: Sequence[str]) -> bool:
        """Return whether the access control lists of this queue or of one above let this user submit here."""
        ...


class QueueLookup(Protocol):
    """The queues of a partition."""

    def find(self, path: str) -> QueueLike | None:
        """Return the queue with this full path, in lower case, or None."""
        ...


class PlacementConfigError(ValueError):
    """A list of rules that cannot be used; names the field, its value and the rule that it breaks."""

    def __init__(self, path: str, value: str, rule: str) -> None:
        super().__init__(f"{path}: {value!r}: {rule}")
        self.path = path
        self.value = value
        self.rule = rule


class PlacementError(Exception):
    """A rule's answer that ends the placement: the application is rejected with this text."""


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """An application that needs a queue; if it is `forced`, the recovery queue takes it where no rule does."""

    application_id: str
    queue: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    tags: Mapping[str, str] | None = None
    forced: bool = False

    def tag(self, key: str) -> str:
        """Return the value of a tag, by the rules of `licorne.core.base.tags`."""
        return tag(self.tags or {}, key)


class RuleAnswer(NamedTuple):
    """The answer of a rule: a queue path, empty for no match; and why."""

    path: str
    why: str


def legal_queue_name(name: str) -> bool:
    """Return whether this text is legal as the name of one queue (docs/spec/config.md, section 3)."""
    return QUEUE_NAME.fullmatch(name) is not None


def _legal(name: str) -> str:
    if not legal_queue_name(name):
        raise PlacementError(INVALID_QUEUE_NAME)
    return name


def _legal_path(path: str) -> str:
    for part in path.split("."):
        _legal(part)
    return path


def _one_queue(text: str) -> str:
    """Return the text as the name of one queue, its dots replaced."""
    return _legal(text.replace(".", DOT_REPLACEMENT))


@dataclass(frozen=True, slots=True)
class PlacementRule(ABC):
    """A rule. It is built with `build_rule` and asked with `answer`."""

    name: ClassVar[str]

    create: bool
    value: str
    parent: PlacementRule | None
    filter: Filter

    def answer(self, request: PlacementRequest, tree: QueueLookup) -> RuleAnswer:
        """Return the queue for this application.

        Raises:
            PlacementError: the application is to be rejected, whatever other rules would say.
        """
        return self._answer(request, tree)

    @abstractmethod
    def _answer(self, request: PlacementRequest, tree: QueueLookup) -> RuleAnswer:
        """Answer as this kind of rule does; the helpers that kinds share follow below."""

    def check(self, path: str) -> None:
        """Check that the rule can be used; `path` is its position in the configuration.

        Raises:
            PlacementConfigError: the rule cannot be used.
        """
        fault = self._fault(path)
        if fault is not None:
            raise fault

    def _fault(self, path: str) -> PlacementConfigError | None:
        """Return why the rule cannot be used, None if it can; `path` is its position in the configuration."""
        return None

    def _filtered(self, request: PlacementRequest) -> RuleAnswer | None:
        """Return "no match" if the filter excludes the user."""
        if self.filter.allows(request.user, request.groups):
            return None
        return RuleAnswer("", f"its filter keeps out user '{request.user}'")

    def _below_parent(self, child: str, request: PlacementRequest, tree: QueueLookup) -> RuleAnswer:
        """Return the path of `child` below the queue that the parent rule gives; without a parent rule, below root."""
        if self.parent is None:
            return self._existing(f"{ROOT}.{child}", tree)
        above = self.parent.answer(request, tree)
        if not above.path:
            return RuleAnswer("", f"parent rule {self.parent.name}: {above.why}")
        path = above.path if above.path.startswith(f"{ROOT}.") else f"{ROOT}.{above.path}"
        queue = tree.find(path.lower())
        if queue is not None and queue.is_leaf:
            raise PlacementError(f"parent rule returned a leaf queue: {path}")
        return self._existing(f"{path}.{child}", tree)

    def _existing(self, path: str, tree: QueueLookup) -> RuleAnswer:
        """Return the path, or no match if the queue is missing and must not be created."""
        if tree.find(path.lower()) is not None:
            return RuleAnswer(path, f"queue {path} exists")
        if self.create:
            return RuleAnswer(path, f"queue {path} may be created")
        return RuleAnswer("", f"queue {path} does not exist and the rule does not create it")

    def _path_or_child(self, text: str, request: PlacementRequest, tree: QueueLookup) -> RuleAnswer:
        """Read the text as a full path if it starts with `root.`, else as the name of one queue below the parent."""
        if text.startswith(f"{ROOT}."):
            return self._existing(_legal_path(text), tree)
        return self._below_parent(_one_queue(text), request, tree)


class ProvidedRule(PlacementRule):
    """The queue that the application asks for."""

    __slots__ = ()
    name = "provided"

    def _answer(self, request: PlacementRequest, tree: QueueLookup) -> RuleAnswer:
        if not request.queue:
            return RuleAnswer("", "the application asks for no queue")
        return self._filtered(request) or self._path_or_child(request.queue, request, tree)


class UserRule(PlacementRule):
    """A queue with the name of the user."""

    __slots__ = ()
    name = "user"

    def _answer(self, request: PlacementRequest, tree: QueueLookup) -> RuleAnswer:
        return self._filtered(request) or self._below_parent(_one_queue(request.user), request, tree)


class FixedRule(PlacementRule):
    """The queue named in the rule; the name may have several levels, and is a full path if it starts with `root`."""

    __slots__ = ()
    name = "fixed"

    def _fault(self, path: str) -> PlacementConfigError | None:
        if not self.value:
            return PlacementConfigError(f"{path}.value", self.value, "a fixed rule needs the name of a queue")
        if not all(legal_queue_name(part) for part in self.value.split(".")):
            return PlacementConfigError(f"{path}.value", self.value, INVALID_QUEUE_NAME)
        if self._qualified and self.parent is not None:
            return PlacementConfigError(f"{path}.parent", self.value, "a fixed rule with a full path takes no parent")
        return None

    @property
    def _qualified(self) -> bool:
        return self.value.startswith(ROOT)

    def _answer(self, request: PlacementRequest, tree: QueueLookup) -> RuleAnswer:
        filtered = self._filtered(request)
        if filtered is not None:
            return filtered
        if self._qualified:
            return self._existing(self.value, tree)
        return self._below_parent(self.value, request, tree)


class TagRule(PlacementRule):
    """The queue named by a tag of the application."""

    __slots__ = ()
    name = "tag"

    def _fault(self, path: str) -> PlacementConfigError | None:
        if not self.value:
            return PlacementConfigError(f"{path}.value", self.value, "a tag rule needs the name of a tag")
        return None

    def _answer(self, request: PlacementRequest, tree: QueueLookup) -> RuleAnswer:
        text = request.tag(self.value)
        if not text:
            return RuleAnswer("", f"the application has no tag '{self.value}'")
        return self._filtered(request) or self._path_or_child(text, request, tree)


class TestRule(PlacementRule):
    """The requested text as one name, or `test`; never below root, so of use only as a parent rule, in tests."""

    __slots__ = ()
    __test__ = False  # not a test, whatever its name looks like to a test runner
    name = "test"

    def _answer(self, request: PlacementRequest, tree: QueueLookup) -> RuleAnswer:
        if not request.queue:
            return RuleAnswer(self.name, "the application asks for no queue")
        return RuleAnswer(
            _legal_path(request.queue).replace(".", DOT_REPLACEMENT), "the queue that the application asks for"
        )


class RecoveryRule(PlacementRule):
    """The recovery queue for forced applications; always the last rule, never configured."""

    __slots__ = ()
    name = "recovery"

    def _answer(self, request: PlacementRequest, tree: QueueLookup) -> RuleAnswer:
        if request.forced:
            return RuleAnswer(RECOVERY_PATH, "the application is forced")
        return RuleAnswer("", "the application is not forced")


RECOVERY_RULE: Final[PlacementRule] = RecoveryRule(create=True, value="", parent=None, filter=Filter(True, None, None))

_RULES: Mapping[str, type[PlacementRule]] = {
    rule.name: rule for rule in (ProvidedRule, UserRule, FixedRule, TagRule, TestRule)
}


def build_rule(config: RuleConfig, path: str) -> PlacementRule:
    """Build the rule that a configuration means, with its parents; `path` is its position there, for messages.

    Raises:
        PlacementConfigError: the name is unknown or reserved, or a value is missing or illegal.
    """
    levels = [config]
    while (above := levels[-1].parent) is not None:
        levels.append(above)
    rule = None
    for depth in range(len(levels) - 1, -1, -1):
        rule = _build_one(levels[depth], rule, path + ".parent" * depth)
    assert rule is not None
    return rule


def _build_one(config: RuleConfig, parent: PlacementRule | None, path: str) -> PlacementRule:
    name = config.name.lower()
    if name == RecoveryRule.name:
        raise PlacementConfigError(f"{path}.name", config.name, "the recovery rule is internal, not configured")
    if name not in _RULES:
        raise PlacementConfigError(f"{path}.name", config.name, f"is none of the rules {', '.join(_RULES)}")
    rule = _RULES[name](config.create, config.value.lower(), parent, Filter.build(config.filter))
    rule.check(path)
    return rule
