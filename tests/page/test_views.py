"""Each view shows what is there, of a running scheduler and of a state dump alike, and every link of it leads somewhere."""

from __future__ import annotations

import gzip
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit

import msgspec
import pytest

from licorne.host.web.page import applications, nodes, now, people, queues
from licorne.host.web.page.bars import bar, strip
from licorne.host.web.page.frame import static_files
from licorne.host.web.page.source import ROWS, DumpSource
from licorne.host.web.page.view import Query, View
from licorne.host.web.rest.state import full_state
from licorne.si import rest_objects as objects
from licorne.si.messages import NodeAction, NodeUpdate
from licorne.state.dump import read_dump
from page.clients import shown, text_of
from rest.world import SECOND_NS, World, busy, run

GI = 2**30
LENDING = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: a
            resources: {guaranteed: {vcore: 4}, max: {vcore: 8}}
          - name: b
            resources: {guaranteed: {vcore: 6}}
"""


class Page(HTMLParser):
    """Every address that a page leads to or loads, and whether each tag that is opened is closed."""

    VOID = frozenset({"meta", "link", "input", "br", "hr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not {name for name, _ in attrs if name == "style" or name.startswith("on")}
        self.links += [value for name, value in attrs if name in ("href", "src") and value]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def lending() -> World:
    """Queue a borrows two cores of b, and a third one waits at no max."""
    world = World().register(text=LENDING)
    world.node("n1", vcore=6_000)
    world.application("app-1", "root.a", "ann")
    for key in ("k1", "k2", "k3", "k4"):
        world.ask(key, "app-1", vcore=2_000)
    world.schedule(1.0)
    return world


def context(view: View, world: World, address: str = "") -> dict[str, Any]:
    """What a view makes of the dump of a scheduler."""
    data = full_state(world.api, world.now)
    source = DumpSource(read_dump(data).state, "dump")
    given = dict(pair.split("=") for pair in address.split("&") if pair)
    query = Query(view.path, given)
    return view.context(query, *run(view.fetch(source, "default", query)))


def test_every_link_leads_somewhere() -> None:
    world = busy()
    world.monitor.tick()
    run(world.monitor.check_health())
    seen, waiting = set[str](), ["/"]
    while waiting:
        address = waiting.pop()
        answer = world.request("GET", address)
        assert not world.failures, address
        assert answer.status_code == 200, address
        if not answer.headers["content-type"].startswith("text/html"):
            continue
        assert "Access-Control-Allow-Origin" not in answer.headers
        for link in Page(answer.text).links:
            found = urlsplit(urljoin(address, link))
            # A question takes a second; of tables one order is enough here.
            if found.path in ("/why", "/find") or "sort=" in found.query or "resource=" in found.query:
                continue
            target = found._replace(fragment="").geturl()
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    paths = {urlsplit(address).path for address in seen}
    assert paths >= {"/queues", "/applications", "/application", "/nodes", "/node", "/people", "/configuration"}


def test_now_tells_what_there_is_and_what_needs_attention() -> None:
    world = lending().node("n2", vcore=1_000)
    world.submit(NodeUpdate(node_id="n2", action=NodeAction.DRAIN_NODE))
    world.application("lost", "root.none", "bob")
    world.schedule(1.0)
    page = text_of(world, "/")
    assert "3 pods run" in page and "1 pod waits" in page
    assert "86 % 2 cores 6 cores 7 cores" in page
    assert "n2" in page
    found = context(now.VIEW, world)
    assert [finding.kind for finding in found["findings"]] == ["waiting", "refused"]


def test_a_queue_below_its_guarantee_and_one_at_its_max_need_attention() -> None:
    world = lending()
    world.application("app-2", "root.b", "bob").ask("k9", "app-2", vcore=2_000)
    world.ask("k5", "app-1", vcore=2_000).ask("k6", "app-1", vcore=2_000).schedule(1.0)
    found = [finding.text for finding in context(now.VIEW, world)["findings"]]
    assert found == [
        "root.b is below its guarantee: 0 of 6 cores used, 2 cores waiting",
        "root.a is at its max: 6 of 8 cores used, 6 cores waiting",
    ]


def test_queues_tell_who_uses_whose_guarantee() -> None:
    found = context(queues.VIEW, lending())
    rows = {row.path: (row.used, row.guaranteed, row.borrowed, row.max, row.waiting) for row in found["table"].rows}
    assert rows["root"] == (6_000, None, 2_000, 6_000, 2_000)  # what is guaranteed below covers four cores of it
    assert rows["root.a"] == (6_000, 4_000, 2_000, 8_000, 2_000)
    assert rows["root.b"] == (0, 6_000, 0, None, 0)
    assert [(loan.borrower, loan.lender, loan.amount) for loan in found["loans"]] == [("root.a", "root.b", 2_000)]
    assert "2 cores root.b" in text_of(lending(), "/queues")


def test_a_queue_has_an_address_of_its_own_with_those_below_it() -> None:
    world = busy()
    found = context(queues.VIEW, world, "queue=root.b")
    assert [row.path for row in found["table"].rows] == ["root.b", "root.b.dyn"]
    assert world.request("GET", "/queues?queue=root.none").status_code == 404


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("", ["app-2", "app-1"]),
        ("sort=application", ["app-1", "app-2"]),
        ("sort=-waiting&filter=BOB", ["app-2"]),
        ("state=Running", ["app-1"]),
        ("queue=root.b", ["app-2"]),
        ("user=alice", ["app-1"]),
        ("filter=none", []),
        ("sort=nonsense&page=99", ["app-2", "app-1"]),
    ],
)
def test_applications_are_sorted_and_filtered_by_the_address(address: str, expected: list[str]) -> None:
    found = context(applications.VIEW, busy(), address)
    assert [row.app.application_id for row in found["table"].rows] == expected


def test_a_table_has_pages() -> None:
    world = World().register().node("n1", vcore=1)
    for number in range(2 * ROWS + 1):
        world.application(f"app-{number:04}", "root.b.dyn", "bob", tags={})
        world.now += SECOND_NS
    page = text_of(world, "/applications?sort=application&page=3")
    assert "app-0400" in page and "app-0399" not in page
    assert "401 to 401 of 401" in page


def test_a_view_with_full_tables_is_small_as_it_is_sent() -> None:
    """With all that a page loads: at most 120 kB, for a table and a picture of more rows than a page shows."""
    world = World().register()
    for number in range(2 * ROWS):
        world.node(f"ip-10-0-{number}.eu-central-1.compute.internal", vcore=16_000, memory=64 * GI, pods=110)
        world.application(f"spark-etl-nightly-{number:08}", f"root.b.team-{number}", "bob")
        world.ask(
            f"spark-etl-nightly-{number:08}-driver", f"spark-etl-nightly-{number:08}", vcore=500, memory=GI, pods=1
        )
    world.schedule(1.0)
    beside = sum(len(gzip.compress(data, 1)) for data in static_files().values())
    for address in ("/", "/queues", "/applications", "/nodes", "/people"):
        assert len(gzip.compress(shown(world, address).encode(), 1)) + beside < 120_000, address


def test_an_application_with_many_pods_is_shown_in_part() -> None:
    world = World().register().node("n1", vcore=1_000, pods=10_000)
    world.application("app-1", "root.other", "bob")
    for number in range(ROWS + 50):
        world.ask(f"k{number:04}", "app-1", vcore=10, pods=1)
    world.schedule(1.0)
    first, second = (text_of(world, f"/application?name=app-1&{more}") for more in ("", "waiting=2"))
    assert "Pods that run 100" in first and "Pods that wait 150" in first
    assert "k0249" in first and "k0249" not in second


def test_one_application_has_its_story() -> None:
    world = lending()
    world.schedule(60.0)
    found = context(applications.ONE, world, "name=app-1")
    assert [stage.state for stage in found["stages"]] == ["Accepted", "Running"]
    page = text_of(world, "/application?name=app-1")
    assert "Pods that run 3" in page and "Pods that wait 1" in page
    assert "the cluster is full" in page.lower() or "too little" in page, page
    assert "Nothing" not in page
    assert world.request("GET", "/application?name=none").status_code == 404


def test_a_rejected_application_says_why() -> None:
    world = World().register(text=LENDING).application("app-1", "root.none", "mallory")
    assert "Rejected" in text_of(world, "/application?name=app-1")
    assert "1 application rejected" in text_of(world, "/")


def test_nodes_are_a_picture_and_a_table() -> None:
    world = busy()
    found = context(nodes.VIEW, world)
    assert [row.node.node_id for row in found["table"].rows] == ["n1", "n2"]
    assert next((each.name, each.nodes, each.empty) for each in found["packing"]) == ("vcore", 2, 1)
    assert [row.node.node_id for row in context(nodes.VIEW, world, "state=empty")["table"].rows] == ["n2"]
    assert "k1" in text_of(world, "/node?name=n1")
    assert world.request("GET", "/node?name=none").status_code == 404


def test_what_other_schedulers_use_of_a_node_is_part_of_its_bar() -> None:
    node = objects.Node(node_id="n", capacity={"vcore": 10}, occupied={"vcore": 5}, schedulable=True, is_reserved=False)
    assert [(part.kind, part.x, part.width) for part in nodes.node_bar(node, "vcore").segments] == [
        ("others", "0.00%", "50.00%")
    ]


def test_people_have_their_limits() -> None:
    page = text_of(busy(), "/people")
    assert "alice 0.01 cores 5 cores root.a 1 1 8 cores" in page
    assert "bob" in page
    assert "dev" in text_of(busy(), "/people?kind=groups")
    found = context(people.VIEW, busy())
    assert {row.name for row in found["table"].rows} == {"alice", "bob"}


def test_configuration_and_health() -> None:
    world = busy()
    assert "No health check has ended yet" in text_of(world, "/configuration")
    run(world.monitor.check_health())
    page = text_of(world, "/configuration")
    assert "All checks of the state passed" in page
    assert "provided" in page
    assert "type: deny" in page and "- mallory" in page


def test_comments_of_the_configuration_are_not_shown_as_rest_does_not_show_them_to_readers() -> None:
    world = World().register(text=f"# the token of the webhook is hunter2\n{LENDING}")
    for address in ("/configuration", "/ws/v1/config"):
        text = world.request("GET", address).text
        assert "root" in text and "hunter2" not in text


def test_without_a_resource_manager_the_page_says_so() -> None:
    for address in ("/", "/queues", "/why", "/find?name=x"):
        answer = World().request("GET", address)
        assert answer.status_code == (303 if "find" in address else 200)
        assert "find" in address or "No resource manager has registered" in answer.text


def test_what_has_a_name_is_found() -> None:
    world = busy()
    for name, target in {
        "app-1": "/application?name=app-1",
        "n1": "/node?name=n1",
        "root.A": "/queues?queue=root.a",
        "k2": "/why?name=k2",
        "": "/applications",
    }.items():
        assert world.request("GET", f"/find?name={name}").headers["location"] == target


def test_several_partitions_have_pages_of_their_own() -> None:
    text = "partitions: [{name: default, queues: []}, {name: gpu, queues: []}]"
    world = World().register(text=text)
    assert "gpu" in shown(world, "/queues?partition=gpu")
    assert "partition=gpu" in shown(world, "/nodes?partition=gpu")
    assert world.request("GET", "/queues?partition=none").status_code == 404


def test_a_dump_of_yunikorn_is_shown_as_it_is() -> None:
    """Fields that YuniKorn leaves out, and a queue tree whose children have no partition."""
    world = lending()
    state = msgspec.json.decode(full_state(world.api, world.now))
    for queue in state["queues"][0]["children"]:
        queue.pop("headroom", None)
    data = msgspec.json.encode(state)
    source = DumpSource(read_dump(data).state, "dump")
    for view in (now.VIEW, queues.VIEW, applications.VIEW, nodes.VIEW, people.VIEW):
        query = Query(view.path, {})
        assert view.context(query, *run(view.fetch(source, "default", query)))


# -- pictures ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("used", "guaranteed", "full", "pending", "parts"),
    [
        (2, 4, 8, 0, [("guaranteed", 0, 25)]),
        (6, 4, 8, 1, [("guaranteed", 0, 50), ("borrowed", 50, 25), ("waiting", 75, 12.5)]),
        (6, None, 8, 0, [("used", 0, 75)]),
        (0, 0, 0, 0, []),
        (8, 0, 8, 100, [("borrowed", 0, 100)]),
        (9, 4, 8, 0, [("guaranteed", 0, 50), ("borrowed", 50, 50)]),
    ],
)
def test_a_bar(
    used: int, guaranteed: int | None, full: int, pending: int, parts: list[tuple[str, float, float]]
) -> None:
    found = bar("pods", used, guaranteed, full, pending)
    assert [(part.kind, float(part.x[:-1]), float(part.width[:-1])) for part in found.segments] == parts
    assert found.beyond == (used + pending > full)


def test_a_bar_of_another_scale() -> None:
    found = bar("pods", 6, 4, 8, 100, scale=16)
    assert [(part.kind, part.width) for part in found.segments] == [
        ("guaranteed", "25.00%"),
        ("borrowed", "12.50%"),
        ("waiting", "62.50%"),
    ]
    assert (found.mark, found.max, found.beyond) == ("25.00%", "50.00%", True)


def test_a_strip_of_many_nodes_is_as_wide_as_one_of_few() -> None:
    assert len(strip([0.5] * 3)) == 3
    columns = strip([1.0] * 500 + [0.0] * 500, columns=10)
    assert [height for _, _, _, height in columns] == ["100.0%"] * 5 + ["0.0%"] * 5
    assert strip([]) == []
