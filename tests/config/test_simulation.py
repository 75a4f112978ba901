"""The properties that only the simulator reads: refused elsewhere, with their place, and checked for a simulation."""

from __future__ import annotations

import pytest

from licorne import ConfigurationError, RegistrationError, SchedulerAPI
from licorne.config import ConfigError, check, examine, load
from licorne.config.simulation import BACKFILL, JOB_ORDER, JobRules, job_rules
from licorne.si import v19

TEXT = """partitions:
  - name: default
    queues:
      - name: root
        queues:
          - name: jobs
            properties:
              simulation.order: sjf
              simulation.backfill: Enabled
          - name: dynamic
            parent: true
            childtemplate:
              properties: {simulation.order: f1}
"""
PLAIN = TEXT[: TEXT.index("            properties")]


def test_elsewhere_they_are_faults_each_with_its_place() -> None:
    report = check(TEXT, file="q.yaml")
    assert [(fault.line, fault.rule) for fault in report.faults] == [
        (8, "property-simulation"),
        (9, "property-simulation"),
        (13, "property-simulation"),
    ]
    assert "only `licorne simulate` reads simulation.order" in report.faults[0].message
    assert report.warnings == ()
    with pytest.raises(ConfigError, match="property-simulation"):
        load(TEXT)


def test_a_scheduler_refuses_them_at_registration_and_reload() -> None:
    api = SchedulerAPI()
    with pytest.raises(RegistrationError, match=r"only `licorne simulate` reads simulation\.order"):
        api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm", config=TEXT), now_ns=0)
    api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm", config=PLAIN), now_ns=0)
    with pytest.raises(ConfigurationError, match=r"only `licorne simulate` reads simulation\.order"):
        api.update_configuration(v19.UpdateConfigurationRequest(rm_id="rm", config=TEXT), now_ns=0)
    with pytest.raises(ConfigurationError, match=r"only `licorne simulate` reads simulation\.order"):
        api.change_configuration("rm", TEXT, now_ns=0)
    assert api.cluster.managers["rm"].configuration.text == PLAIN


def test_a_simulation_has_them() -> None:
    report, configuration = examine(TEXT, simulated=True)
    assert report.faults == ()
    assert configuration == load(TEXT, simulated=True)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("sjf", "SJF", "'SJF' is no order of jobs: fcfs, sjf, f1, wfp3, uni, in lower case"),
        ("Enabled", "yes", "'yes' is neither enabled nor disabled"),
        ("simulation.order: sjf", "other: x", "backfill needs an order of jobs"),
    ],
)
def test_for_a_simulation_their_values_must_be_legal(old: str, new: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(TEXT.replace(old, new), simulated=True)
    assert words in str(caught.value)


def test_what_they_mean() -> None:
    assert job_rules({}) is None
    assert job_rules({BACKFILL: "enabled"}) is None
    assert job_rules({JOB_ORDER: "uni"}) == JobRules("uni", backfill=False)
    assert job_rules({JOB_ORDER: "uni", BACKFILL: "ENABLED"}) == JobRules("uni", backfill=True)
