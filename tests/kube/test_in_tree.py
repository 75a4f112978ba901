"""Volumes of old plugins, as their drivers know them: handles, zones, and what a change of the kubelet does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from licorne.core.nodes.constraints import FIELD_NAME, read_expression
from licorne.kube.objects import CSINode, Pod
from licorne.kube.objects.pods import Volume
from licorne.kube.objects.volumes import PersistentVolume
from licorne.kube.pods.in_tree import MIGRATED, csi_source, driver_of, migrated_plugins, usable_on
from licorne.kube.pods.storage import Storage
from licorne.kube.pods.volumes import Mark, read_volumes

ZONE = "topology.kubernetes.io/zone"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
GKE_ZONE = "topology.gke.io/zone"
GCE = "pd.csi.storage.gke.io"


@pytest.mark.parametrize(
    ("source", "labels", "driver", "handle"),
    [
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, {}, "ebs.csi.aws.com", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://eu-1a/vol-1"}}, {}, "ebs.csi.aws.com", "vol-1"),
        ({"gcePersistentDisk": {"pdName": "d"}}, {}, GCE, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
        ({"gcePersistentDisk": {"pdName": "d"}}, {ZONE: "a-b-c"}, GCE, "projects/UNSPECIFIED/zones/a-b-c/disks/d"),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            {BETA_ZONE: "a-b-c__a-b-d"},
            GCE,
            "projects/UNSPECIFIED/regions/a-b/disks/d",
        ),
        ({"azureDisk": {"diskName": "n", "diskURI": "/s/d"}}, {}, "disk.csi.azure.com", "/s/d"),
        ({"cinder": {"volumeID": "c"}}, {}, "cinder.csi.openstack.org", "c"),
        ({"portworxVolume": {"volumeID": "p"}}, {}, "pxd.portworx.com", "p"),
        ({"csi": {"driver": "d", "volumeHandle": "h"}}, {}, "d", "h"),
    ],
)
def test_a_volume_counts_for_the_driver_that_has_replaced_its_plugin(
    source: dict[str, Any], labels: dict[str, str], driver: str, handle: str
) -> None:
    found = csi_source(volume(source, labels).spec, labels)
    assert found is not None
    assert (found.driver, found.volume_handle) == (driver, handle)
    if "csi" not in source:
        named = csi_source(msgspec.convert({"name": "v", **source}, Volume))
        assert named is not None and named.driver == driver


@pytest.mark.parametrize(
    ("source", "labels"),
    [
        ({"vsphereVolume": {"volumePath": "v"}}, {}),
        ({"azureDisk": {"diskURI": "/s/d", "kind": "Shared"}}, {}),
        ({"gcePersistentDisk": {"pdName": "d"}}, {ZONE: "a-b-c__x-y-z"}),
        ({"nfs": {"server": "s", "path": "/"}}, {}),
    ],
)
def test_what_kube_scheduler_does_not_translate_counts_for_no_driver(
    source: dict[str, Any], labels: dict[str, str]
) -> None:
    assert csi_source(volume(source, labels).spec, labels) is None


@pytest.mark.parametrize(
    ("provisioner", "driver"),
    [
        ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
        ("kubernetes.io/vsphere-volume", ""),
        ("disk.example.com", "disk.example.com"),
    ],
)
def test_a_provisioner_makes_volumes_of_a_driver(provisioner: str, driver: str) -> None:
    assert driver_of(provisioner) == driver


@pytest.mark.parametrize(
    ("labels", "terms", "not_migrated", "migrated"),
    [
        pytest.param({}, [], "n0 n1 n2", "n0 n1 n2", id="no zone"),
        pytest.param({ZONE: "a"}, [], "n0 n1 n2", "n0", id="the label of the volume binds where the driver is at work"),
        pytest.param({BETA_ZONE: "a__b"}, [], "n0 n1 n2", "n0 n1", id="several zones, the old label"),
        pytest.param({}, [(ZONE, "b")], "n1", "n1", id="an affinity to a zone"),
        pytest.param({}, [(BETA_ZONE, "b")], "", "n1", id="to the old label, which the nodes do not have"),
        pytest.param({ZONE: "a"}, [(ZONE, "b")], "n1", "n1", id="the affinity goes before the label"),
        pytest.param({ZONE: "a"}, [("disk", "x")], "n0 n2", "n0", id="the zone and another condition"),
    ],
)
def test_where_a_bound_volume_can_be_used(
    labels: dict[str, str], terms: list[tuple[str, str]], not_migrated: str, migrated: str
) -> None:
    where = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]} for key, value in terms]
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": where}}} if where else {}
    found = usable_on(volume({"gcePersistentDisk": {"pdName": "d"}}, labels, **affinity))
    nodes = {
        f"n{number}": {ZONE: zone, GKE_ZONE: zone, **({} if number == 1 else {"disk": "x"})}
        for number, zone in enumerate("abc")
    }
    for wanted, more in ((not_migrated, {}), (migrated, {f"{MIGRATED}kubernetes.io/gce-pd": ""})):
        usable = [
            name
            for name, known in nodes.items()
            if found is None
            or any(all(read_expression(one, "").is_true({**known, **more}) for one in term) for term in found)
        ]
        assert usable == wanted.split()


def test_which_plugins_a_kubelet_has_migrated() -> None:
    note = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs,kubernetes.io/gce-pd"}
    found = msgspec.convert({"metadata": {"name": "n", "annotations": note}}, CSINode)
    assert migrated_plugins(found) == ["kubernetes.io/aws-ebs", "kubernetes.io/gce-pd"]
    assert migrated_plugins(msgspec.convert({"metadata": {"name": "n"}}, CSINode)) == []


@pytest.mark.parametrize(
    ("source", "holds", "unless"),
    [
        ({"gcePersistentDisk": {"pdName": "d", "readOnly": True}}, ["gce-pd d"], ["gce-pd d written"]),
        ({"gcePersistentDisk": {"pdName": "d"}}, ["gce-pd d", "gce-pd d written"], ["gce-pd d"]),
        (
            {"awsElasticBlockStore": {"volumeID": "v", "readOnly": True}},
            ["aws-ebs v", "aws-ebs v written"],
            ["aws-ebs v"],
        ),
    ],
)
def test_a_disk_in_the_pod_itself_keeps_other_pods_off_its_node(
    source: dict[str, Any], holds: list[str], unless: list[str]
) -> None:
    body = {"metadata": {"name": "p"}, "spec": {"volumes": [{"name": "v", **source}]}}
    found = read_volumes(msgspec.convert(body, Pod), Storage())
    assert found.why == ""
    assert found.holds == tuple(Mark(FIELD_NAME, name) for name in holds)
    assert found.unless == tuple(Mark(FIELD_NAME, name) for name in unless)
    assert len(found.attached) == 1


def volume(source: dict[str, Any], labels: dict[str, str], **spec: Any) -> PersistentVolume:
    return msgspec.convert({"metadata": {"name": "pv", "labels": labels}, "spec": {**source, **spec}}, PersistentVolume)
