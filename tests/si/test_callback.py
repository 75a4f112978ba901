"""The plugins that a resource manager offers, the behaviour if it offers none, and the spelling of the constants."""

from __future__ import annotations

import pytest

from licorne.si import ResourceManagerCallback, constants, first, overrides, qualified_partition, v19

METHODS = [name for name in vars(ResourceManagerCallback) if not name.startswith("_")]


class WithPredicates(ResourceManagerCallback):
    def predicates(self, args: v19.PredicatesArgs) -> str | None:
        return f"no room for {args.allocation_key}"


class Inherits(WithPredicates):
    pass


class Duck:
    def predicates(self, args: object) -> None:
        """Allow every ask on every node."""


def on_the_instance() -> ResourceManagerCallback:
    callback = ResourceManagerCallback()
    callback.predicates = Duck().predicates  # type: ignore[method-assign]
    return callback


@pytest.mark.parametrize(
    ("callback", "method", "expected"),
    [
        (ResourceManagerCallback(), "predicates", False),
        (WithPredicates(), "predicates", True),
        (WithPredicates(), "get_state_dump", False),
        (Inherits(), "predicates", True),
        (Duck(), "predicates", True),
        (Duck(), "get_state_dump", False),
        (on_the_instance(), "predicates", True),
        (None, "predicates", False),
        (WithPredicates(), "no_such_method", False),
    ],
)
def test_overrides(callback: object, method: str, expected: bool) -> None:
    assert overrides(callback, method) is expected


@pytest.mark.parametrize("method", METHODS)
def test_a_plain_callback_offers_nothing(method: str) -> None:
    assert not overrides(ResourceManagerCallback(), method)


def test_defaults_change_nothing() -> None:
    callback = ResourceManagerCallback()
    callback.update_allocation(v19.AllocationResponse())
    callback.update_application(v19.ApplicationResponse())
    callback.update_node(v19.NodeResponse())
    callback.recv_update_response(first.UpdateResponse())
    callback.send_event([v19.EventRecord()])
    callback.update_container_scheduling_state(v19.UpdateContainerSchedulingStateRequest())
    callback.re_sync_scheduler_cache(first.ReSyncSchedulerCacheArgs())
    assert callback.predicates(v19.PredicatesArgs()) is None
    assert callback.get_state_dump() == "{}"
    assert callback.preemption_predicates(v19.PreemptionPredicatesArgs(start_index=2)) == (
        v19.PreemptionPredicatesResponse(success=True, index=2)
    )
    assert callback.update_configuration(first.UpdateConfigurationRequest(configs="x")).success is False


@pytest.mark.parametrize(
    ("name", "qualified"),
    [("", "[rm]default"), ("gpu", "[rm]gpu"), ("[rm]gpu", "[rm]gpu"), ("[other]gpu", "[other]gpu")],
)
def test_qualified_partition(name: str, qualified: str) -> None:
    assert qualified_partition(name, "rm") == qualified


SPELLINGS = """
ARCH si/arch
HOST_NAME si/hostname
RACK_NAME si/rackname
OS si/os
INSTANCE_TYPE si/instance-type
FAILURE_DOMAIN_ZONE si/zone
FAILURE_DOMAIN_REGION si/region
LOCAL_IMAGES si/local-images
NODE_PARTITION si/node-partition
APPLICATION_ID si/application-id
CONTAINER_IMAGE si/container-image
CONTAINER_PORTS si/container-ports
DOMAIN_K8S kubernetes.io/
DOMAIN_YUNIKORN yunikorn.apache.org/
DOMAIN_YUNIKORN_INTERNAL internal.yunikorn.apache.org/
GROUP_META meta/
GROUP_LABEL label/
GROUP_ANNOTATION annotation/
KEY_POD_NAME podName
KEY_NAMESPACE namespace
KEY_REQUIRED_NODE requiredNode
KEY_CREATION_TIME creationTime
KEY_FOREIGN foreign
FOREIGN_STATIC static
FOREIGN_DEFAULT default
TAG_REQUIRED_NODE yunikorn.apache.org/requiredNode
TAG_ALLOCATION_CREATION_TIME creationTime
TAG_FOREIGN foreign
TAG_APPLICATION_CREATION_TIME yunikorn.apache.org/creationTime
TAG_RESOURCE_QUOTA namespace.resourcequota
TAG_RESOURCE_GUARANTEED namespace.resourceguaranteed
TAG_RESOURCE_MAX_APPS namespace.resourcemaxapps
TAG_CREATE_FORCE application.create.force
TAG_NAMESPACE namespace
TAG_NAMESPACE_PARENT_QUEUE namespace.parentqueue
MEMORY memory
VCORE vcore
DEFAULT_PARTITION default
NOBODY_USER nobody
NOBODY_GROUP nogroup
TAG_NODE_CONSTRAINTS licorne/node-constraints
TAG_POD licorne/pod
TAG_POD_TERMS licorne/pod-terms
TAG_GRACE_PERIOD licorne/termination-grace-period
TAG_ENDING licorne/ending
TAG_WHOLE_TIMEOUT licorne/whole-placeholder-timeout
ATTRIBUTE_LABEL_PREFIX label/
ATTRIBUTE_TAINTS taints
SETTING_PRIORITY_CLASS_PREFIX priority.class.
"""


def test_constants() -> None:
    expected = dict(line.split(" ") for line in SPELLINGS.strip().splitlines())
    assert {name: value for name, value in vars(constants).items() if name.isupper()} == expected
