"""The state machines row by row, and the law that an event without a row changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.core.base import states
from licorne.core.base.states import ApplicationEvent, ApplicationState, ObjectEvent, ObjectState, next_state

SHORT_EVENTS = {event.value.removesuffix("Application"): event for event in ApplicationEvent}

# event: from -> to, as in docs/spec/states.md, sections 1.3 and 1.4
COMMON = """
reject: New -> Rejected
run: New -> Accepted
run: Running, Completing -> Running
complete: Accepted, Running -> Completing
complete: Completing -> Completed
fail: New, Accepted, Running -> Failing
fail: Failing -> Failed
expire: Completed -> Expired
"""
STARTING = """
run: Accepted -> Starting
run: Starting -> Running
complete: Starting -> Completing
fail: Starting -> Failing
"""
NO_STARTING = "run: Accepted -> Running"
V19 = """
run: Resuming -> Accepted
resume: New, Accepted -> Resuming
expire: Failed, Rejected -> Expired
"""
APPLICATION_TABLES = [
    pytest.param(states.APPLICATION, COMMON + NO_STARTING + V19, id="1.9"),
    pytest.param(states.APPLICATION_STARTING, COMMON + STARTING + V19, id="1.9 with Starting"),
    pytest.param(states.APPLICATION_FIRST, COMMON + STARTING, id="first"),
    pytest.param(states.APPLICATION_FIRST_NO_STARTING, COMMON + NO_STARTING, id="first without Starting"),
]


def rows(text: str) -> set[tuple[str, str, str]]:
    found: set[tuple[str, str, str]] = set()
    for line in filter(None, text.splitlines()):
        event, _, arrow = line.partition(": ")
        sources, _, target = arrow.partition(" -> ")
        found |= {(source, SHORT_EVENTS[event], target) for source in sources.split(", ")}
    return found


@pytest.mark.parametrize(("table", "text"), APPLICATION_TABLES)
def test_the_application_table_has_the_rows_of_the_specification_and_no_others(
    table: states.ApplicationTable, text: str
) -> None:
    assert {(source, event, target) for (source, event), target in table.items()} == rows(text)


@pytest.mark.parametrize(
    ("first_interface", "starting", "table"),
    [
        (False, False, states.APPLICATION),
        (False, True, states.APPLICATION_STARTING),
        (True, True, states.APPLICATION_FIRST),
        (True, False, states.APPLICATION_FIRST_NO_STARTING),
    ],
)
def test_the_table_of_a_resource_manager(first_interface: bool, starting: bool, table: states.ApplicationTable) -> None:
    assert states.application_table(first_interface=first_interface, starting=starting) is table


@pytest.mark.parametrize(
    ("state", "event", "after"),
    [
        ("Active", "Start", "Active"),
        ("Stopped", "Start", "Active"),
        ("Draining", "Start", "Active"),
        ("Active", "Stop", "Stopped"),
        ("Stopped", "Stop", "Stopped"),
        ("Draining", "Stop", None),
        ("Active", "Remove", "Draining"),
        ("Draining", "Remove", "Draining"),
        ("Stopped", "Remove", None),
    ],
)
def test_queues_and_partitions(state: str, event: str, after: str | None) -> None:
    assert next_state(states.OBJECT, ObjectState(state), ObjectEvent(event)) == after


def test_the_lengths_of_the_timers() -> None:
    lengths_s = {state: timer.length_ns / 1e9 for state, timer in states.STATE_TIMERS.items()}
    three_days_s = 3 * 24 * 60 * 60
    assert lengths_s == {
        "Starting": 5 * 60,
        "Completing": 30,
        "Completed": three_days_s,
        "Failed": three_days_s,
        "Rejected": three_days_s,
    }
    assert states.PLACEHOLDER_TIMEOUT_NS == 15 * 60 * 10**9


@pytest.mark.parametrize("state", list(states.STATE_TIMERS))
def test_a_timer_moves_its_state_on_wherever_the_state_is_not_final(state: ApplicationState) -> None:
    """Failed and Rejected are final in the first interface, and only there."""
    event = states.STATE_TIMERS[state].event
    for table in (states.APPLICATION, states.APPLICATION_STARTING):
        if state in {key[0] for key in table}:
            assert next_state(table, state, event) not in (None, state)
    moved = next_state(states.APPLICATION_FIRST, state, event)
    assert (moved is None) == (state in ("Failed", "Rejected"))


@given(
    table=st.sampled_from([case.values[0] for case in APPLICATION_TABLES]),
    events=st.lists(st.sampled_from(ApplicationEvent), max_size=30),
)
def test_any_history_stays_in_legal_states_and_an_end_is_an_end(
    table: states.ApplicationTable, events: list[ApplicationEvent]
) -> None:
    state = ApplicationState.NEW
    before = dict(table)
    ended = False
    for event in events:
        after = next_state(table, state, event)
        if (state, event) not in before:
            assert after is None  # no row: nothing changes
            continue
        assert after is not None
        state = after
        assert not ended or state in states.TERMINATED_STATES
        ended = ended or state in states.TERMINATED_STATES
    assert table == before


def test_each_state_can_be_reached_and_each_name_is_reported_as_spelled() -> None:
    for table, used in (
        (states.APPLICATION, set(ApplicationState) - {ApplicationState.STARTING}),
        (states.APPLICATION_STARTING, set(ApplicationState)),
        (states.APPLICATION_FIRST, set(ApplicationState) - {ApplicationState.RESUMING}),
    ):
        reached = {ApplicationState.NEW}
        while more := {target for (source, _), target in table.items() if source in reached} - reached:
            reached |= more
        assert reached == used
    assert f"{ApplicationState.COMPLETING} {ApplicationEvent.COMPLETE}" == "Completing completeApplication"
