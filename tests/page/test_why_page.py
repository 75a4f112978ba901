"""The page `/why`: the answer for people, and the changes that would let an ask run as they are written."""

from __future__ import annotations

import pytest
import yaml

from licorne import SchedulerAPI
from licorne.answers import Home
from licorne.answers.changes import MaxApplications, NoTaint, Tolerates
from licorne.answers.proposals import Proposal
from licorne.answers.why import AskAnswer
from licorne.answers.why import why as why_of
from licorne.answers.written import who
from licorne.answers.written import written as written_of
from licorne.host.web.rest.state import full_state
from licorne.si import v19
from licorne.state.dump import read_dump
from licorne.state.restore import restore
from page.clients import shown, text_of, without_own_scripts
from rest.world import World, busy

TIGHT = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: teams
            queues:
              - name: a
                resources: {max: {vcore: 2}}
                limits: [{limit: everybody, users: ['*'], maxresources: {memory: 10Gi}}]
"""


def asked(world: World, key: str) -> AskAnswer:
    answer = why_of(Home(restore(read_dump(full_state(world.api, world.now, exact=True)))), key)
    assert isinstance(answer, AskAnswer)
    return answer


def tight() -> World:
    world = World().register(text=TIGHT).node("n1", vcore=8_000, memory=64 * 2**30)
    return world.application("app-1", "root.teams.a", "ann")


def test_the_page_is_for_people() -> None:
    world = busy()
    page = shown(world, "/why")
    assert 'href="/why?name=app-2"' in page
    one = text_of(world, "/why?name=k2")
    assert "What would let it run" in one and "What it has to pass" in one


def test_what_is_not_there_is_said_with_what_is_near() -> None:
    page = shown(busy(), "/why?name=app-")
    assert 'role="alert"' in page and "app-1" in page


def test_a_higher_max_is_a_part_of_the_configuration() -> None:
    world = tight().ask("k1", "app-1", vcore=3_500, memory=2**30)
    world.schedule(1.0)
    answer = asked(world, "k1")
    assert answer.proposals is not None
    [found] = [each for proposal in answer.proposals.found for each in written_of(proposal, answer)]
    assert found.numbers == (("root.teams.a", "vcore", 2_000, 3_500),)
    [partition] = yaml.safe_load(found.text)["partitions"]
    [root] = partition["queues"]
    [teams] = root["queues"]
    [a] = teams["queues"]
    assert (root["name"], teams["name"], a) == (
        "root",
        "teams",
        {"name": "a", "resources": {"max": {"vcore": "3500m"}}},
    )
    assert "3500m" in text_of(world, "/why?name=k1")


def test_a_higher_limit_of_users_is_a_part_of_the_configuration() -> None:
    world = tight().ask("k1", "app-1", vcore=500, memory=12 * 2**30)
    world.schedule(1.0)
    answer = asked(world, "k1")
    assert answer.proposals is not None
    [found] = [each for proposal in answer.proposals.found for each in written_of(proposal, answer)][:1]
    assert "memory: 12Gi" in found.text and "'*'" in found.text


def test_the_change_that_is_written_lets_it_run() -> None:
    """The values of the page, put into the configuration by hand, have the effect that the page promises."""
    world = tight().ask("k1", "app-1", vcore=3_500)
    world.schedule(1.0)
    api: SchedulerAPI = world.api
    assert "3500m" in text_of(world, "/why?name=k1")
    text = TIGHT.replace("vcore: 2", "vcore: 3500m")
    api.update_configuration(v19.UpdateConfigurationRequest(rm_id="mycluster", config=text), now_ns=world.now)
    assert world.schedule(1.0) == 1


def test_what_concerns_the_whole_cluster_comes_last_and_says_so() -> None:
    own, queue, node = (
        Proposal((change,), "", "n1", 0.0, smallest=True)
        for change in (Tolerates("a=b:NoSchedule"), MaxApplications("root", 1), NoTaint("n1", "a=b:NoSchedule"))
    )
    assert sorted((node, queue, own), key=who) == [own, queue, node]
    assert [each.reach for each in written_of(node, asked(busy(), "k2"))] == [
        "For the whole cluster: pods that do not tolerate this taint may then run on n1, too."
    ]


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "'><b>", "k9"])
def test_a_name_on_the_page_is_only_text(name: str) -> None:
    page = busy().client().build_request("GET", "/why", params={"name": name}).url
    text = shown(busy(), f"{page.raw_path.decode()}")
    assert "<script" not in without_own_scripts(text) and "<b>" not in text
