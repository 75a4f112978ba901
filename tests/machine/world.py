"""The base of the machine's rules: registered resource managers, the choice of one of many, the making of messages."""

from __future__ import annotations

from typing import Any

from hypothesis.stateful import RuleBasedStateMachine

from licorne.si import first, messages, v19
from licorne.si.messages import NodeAction
from machine import configs, evictions, wire
from machine.amounts import CONSTRAINTS, TAINT
from machine.driver import CLASSES, SECOND_NS, Driver, Said
from machine.expected import ExpectedState
from machine.situations import Situations
from machine.things import Alloc, App

USERS = [("alice", ("dev",)), ("bob", ("ops", "dev")), ("carol", ()), ("alice", ("ops",))]
QUEUES = ["root.a", "root.b.b1", "root.b.b2", "root.c", "", "root.a", "root.b.b1", "nowhere", "root.dyn.team"]
QUOTA_TAGS: list[dict[str, str]] = [
    {},
    {"namespace": "web"},
    {"namespace": "web", "namespace.resourcequota": '{"resources":{"vcore":{"value":6}}}'},
    {
        "namespace": "web",
        "namespace.resourcequota": '{"resources":{"vcore":{"value":20}}}',
        "namespace.resourcemaxapps": "1",
    },
    {"namespace": "web", "namespace.resourcemaxapps": "3"},
]
SIZES = [{"vcore": 8, "memory": 8}, {"vcore": 12, "memory": 6}, {"vcore": 16, "memory": 16, "gpu": 2}, {"vcore": 5}]
ATTRIBUTES = [
    {"label/zone": "a"},
    {"label/zone": "b"},
    {"label/zone": "c", "label/ssd": "1"},
    {"taints": TAINT},
    {"label/zone": "a", "label/ssd": "1"},
]
PASSES_NS = [n * SECOND_NS // 10 for n in (21, 5, 11, 30, 101, 205, 310, 3010, 72010)]
AGES_S = [3, 3, 100, 1, 0, -5]
PRIORITIES = [0, 0, 0, 1, 5, -2]


class World(RuleBasedStateMachine):
    """A scheduler with its resource managers. `situations` is shared by all runs of a test; `alone` as in `Driver`."""

    situations = Situations()
    alone = False

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(self.situations, alone=self.alone)
        self.keys = 0
        self.chosen: dict[str, configs.Choices] = {}
        self.settings: dict[str, str] = {}

    # -- who is there ----------------------------------------------------------------------------------

    def register(self, rm_id: str, chosen: configs.Choices, *, moody: bool) -> None:
        """Register, with a plain configuration if this one is refused."""
        for choices in (chosen, configs.PLAIN):
            text = configs.text(choices)
            request: Any
            if rm_id == "s":
                self.driver.call("group", "g", text)
                request = first.RegisterResourceManagerRequest(rm_id=rm_id, policy_group="g")
            else:
                extra = {**self.settings, **{f"priority.class.{name}": str(n) for name, n in CLASSES.items()}}
                request = v19.RegisterResourceManagerRequest(rm_id=rm_id, config=text, extra_config=extra)
            if not isinstance(self.driver.register(request, moody=moody), str):
                break
        self.chosen[rm_id] = choices
        self.open(rm_id)

    def open(self, rm_id: str) -> None:
        """Start records for new partitions, and drop those of partitions that have gone."""
        driver = self.driver
        starting = rm_id == "s" or self.settings["application.state.starting"] == "true"
        found = configs.partitions(self.chosen[rm_id])
        for name in found:
            key = (rm_id, name)
            if key not in driver.expected:
                classes = {} if rm_id == "s" else CLASSES
                first_interface = rm_id == "s"
                driver.expected[key] = ExpectedState(
                    first_interface=first_interface,
                    starting=starting,
                    classes=classes,
                    whereabouts=driver.whereabouts(*key),
                )
            driver.queues[key] = found[name]
        for key in [key for key in driver.expected if key[0] == rm_id and key[1] not in found]:
            del driver.expected[key], driver.queues[key]

    def configure(self, rm_id: str, chosen: configs.Choices) -> bool:
        """Load a configuration; False if it is refused."""
        result, _ = self.load(rm_id, chosen)
        if isinstance(result, str):
            return False
        self.after()
        return True

    def load(self, rm_id: str, chosen: configs.Choices) -> tuple[Any, Said]:
        """Load a configuration and start its records; return the result, a text if it is refused, and the messages."""
        driver = self.driver
        text = configs.text(chosen)
        if rm_id == "s":
            driver.call("group", "g", text)
            result, said = driver.call("reload_configuration", rm_id, now_ns=driver.now)
        else:
            request = v19.UpdateConfigurationRequest(rm_id=rm_id, config=text)
            result, said = driver.call("update_configuration", request, now_ns=driver.now)
        driver.quiet = False
        if not isinstance(result, str):
            self.chosen[rm_id] = chosen
            self.open(rm_id)
        return result, said

    def after(self) -> None:
        """Check everything at the end of a step."""
        self.driver.check()

    def teardown(self) -> None:
        """A run is over."""
        self.driver.replay()

    # -- choosing --------------------------------------------------------------------------------------

    def where(self, number: int) -> tuple[str, str, ExpectedState]:
        """A partition: the first ones more often."""
        rm_id, name = "s" if number in (4, 5, 6) else "v", "gpu" if number >= 6 else "default"
        if (rm_id, name) not in self.driver.expected:
            name = "default"
        return rm_id, name, self.driver.expected[rm_id, name]

    @staticmethod
    def one_of(found: dict[str, Any], number: int) -> Any:
        """One of the existing objects, None if there is none."""
        return list(found.values())[number % len(found)] if found else None

    def key(self, kind: str) -> str:
        """A new name."""
        self.keys += 1
        return f"{kind}{self.keys}"

    def send(self, rm_id: str, inputs: list[Any], how: int = 0) -> None:
        """Send internal messages, or now and then those of the dialect."""
        sender = None
        if how >= 6 and all(wire.can_say(message, first_interface=rm_id == "s") for message in inputs):
            sender = wire.send_first if rm_id == "s" else wire.send_v19
        self.driver.submit(rm_id, inputs, sender)

    def then(self, number: int) -> None:
        """Most changes are followed by decisions, some only after others, some a little later."""
        self.after()
        if number == 7:
            self.driver.advance(21 * SECOND_NS // 10)
            self.after()
        if number >= 2:
            self.driver.schedule(1 if number == 2 else None)
            if number == 2:
                self.situations.count("limit of the schedule call reached")
            self.after()

    # -- messages --------------------------------------------------------------------------------------

    def node(self, name: str, size: int, attributes: int) -> messages.NodeUpdate:
        return messages.NodeUpdate(
            node_id=self.key("n"),
            action=NodeAction.CREATE_DRAIN if size == 7 else NodeAction.CREATE,
            partition=name,
            capacity=dict(SIZES[size % len(SIZES)]),
            attributes=dict(ATTRIBUTES[attributes % len(ATTRIBUTES)]),
        )

    def application(self, rm_id: str, name: str, queue: int, user: int, tags: int) -> messages.AddApplication:
        queue %= len(QUEUES)
        who, groups = USERS[user % len(USERS)]
        return messages.AddApplication(
            application_id=self.key("app"),
            partition=name,
            queue=QUEUES[queue],
            user=who,
            groups=groups,
            tags=dict(QUOTA_TAGS[tags % len(QUOTA_TAGS)]) if not QUEUES[queue] else {},
            execution_timeout_ms=40_000 if tags > 4 else 0,
            timeout_is_running_time=rm_id == "s",
        )

    def ask(self, rm_id: str, name: str, app: App, count: int, size: int, flavour: int, more: int) -> None:
        """Some asks alike: `size` is how large, `flavour` what is special, `more` its constraint, age and priority."""
        expected = self.driver.expected[rm_id, name]
        tags: dict[str, str] = {}
        constraint = more if flavour in (1, 2) else 0
        constraint %= len(CONSTRAINTS)
        if constraint:
            tags |= {"licorne/node-constraints": CONSTRAINTS[constraint], "constraint": str(constraint)}
        if flavour in (2, 3):
            tags["creationTime"] = str(self.driver.now // SECOND_NS - AGES_S[more % len(AGES_S)])
        resource = {"vcore": 1 + size, "memory": size // 2}
        if flavour == 4 and expected.nodes:  # the fullest node, which may have to make room
            fullest = max(expected.nodes, key=lambda id_: (sum(expected.used[id_].values()), id_))
            tags["yunikorn.apache.org/requiredNode"] = fullest if more < 6 else "n999"
            resource = {"vcore": 1 + size % 5}
        if more == 7:
            resource["gpu"] = 1
        asks = [
            messages.Allocation(
                key=self.key("k"),
                application_id=app.id,
                partition=name,
                resource=dict(resource),
                priority=PRIORITIES[more % len(PRIORITIES)] if flavour >= 4 else 0,
                priority_class="high" if flavour == 6 and rm_id == "v" else "",
                tags=dict(tags) or None,
                max_allocations=2 + more % 3 if rm_id == "s" and flavour == 5 else 1,
                timeout_ms=9_000 if rm_id == "s" and flavour == 7 else 0,
                **evictions.flags(rm_id, size, flavour, more),
            )
            for _ in range(1 + count)
        ]
        if app.independent:
            asks = []
        self.send(rm_id, asks, 6 if size == 5 and flavour != 6 else 0)

    @staticmethod
    def end(expected: ExpectedState, name: str, app: App, alloc: Alloc) -> messages.Release:
        if expected.first_interface:
            return messages.Release(partition=name, application_id=app.id, uuid=alloc.id, what="allocation")
        return messages.Release(partition=name, application_id=app.id, key=alloc.key)
