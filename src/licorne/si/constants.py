"""The names that the Scheduler Interface gives to attributes, tags and resources.

Source: docs/spec/scheduler-interface.md, section 8.

They are spelled once, here. A tag's key is a domain, optionally a group, and a name, joined as they stand:
`DOMAIN_K8S + GROUP_META + KEY_NAMESPACE` is `kubernetes.io/meta/namespace`.
"""

from __future__ import annotations

from typing import Final

# Node attributes. They also count as labels under these names (docs/spec/scheduler-interface.md, section 9).
ARCH: Final = "si/arch"
HOST_NAME: Final = "si/hostname"
RACK_NAME: Final = "si/rackname"
OS: Final = "si/os"
INSTANCE_TYPE: Final = "si/instance-type"
FAILURE_DOMAIN_ZONE: Final = "si/zone"
FAILURE_DOMAIN_REGION: Final = "si/region"
LOCAL_IMAGES: Final = "si/local-images"
NODE_PARTITION: Final = "si/node-partition"

# Allocation attributes.
APPLICATION_ID: Final = "si/application-id"
CONTAINER_IMAGE: Final = "si/container-image"
CONTAINER_PORTS: Final = "si/container-ports"

# Tag domains and groups.
DOMAIN_K8S: Final = "kubernetes.io/"
DOMAIN_YUNIKORN: Final = "yunikorn.apache.org/"
DOMAIN_YUNIKORN_INTERNAL: Final = "internal.yunikorn.apache.org/"
GROUP_META: Final = "meta/"
GROUP_LABEL: Final = "label/"
GROUP_ANNOTATION: Final = "annotation/"

# Tag keys.
KEY_POD_NAME: Final = "podName"
KEY_NAMESPACE: Final = "namespace"
KEY_REQUIRED_NODE: Final = "requiredNode"
KEY_CREATION_TIME: Final = "creationTime"
KEY_FOREIGN: Final = "foreign"
FOREIGN_STATIC: Final = "static"
FOREIGN_DEFAULT: Final = "default"

# Whole keys that the scheduler reads: of an allocation, of an application. Times are Unix seconds.
TAG_REQUIRED_NODE: Final = DOMAIN_YUNIKORN + KEY_REQUIRED_NODE
TAG_ALLOCATION_CREATION_TIME: Final = KEY_CREATION_TIME
TAG_FOREIGN: Final = KEY_FOREIGN
TAG_APPLICATION_CREATION_TIME: Final = DOMAIN_YUNIKORN + KEY_CREATION_TIME

# Application tags; their names are matched without regard to case.
TAG_RESOURCE_QUOTA: Final = "namespace.resourcequota"
TAG_RESOURCE_GUARANTEED: Final = "namespace.resourceguaranteed"
TAG_RESOURCE_MAX_APPS: Final = "namespace.resourcemaxapps"
TAG_CREATE_FORCE: Final = "application.create.force"
TAG_NAMESPACE: Final = "namespace"
TAG_NAMESPACE_PARENT_QUEUE: Final = "namespace.parentqueue"

# Resource types with a unit: bytes, and thousandths of a core.
MEMORY: Final = "memory"
VCORE: Final = "vcore"

# Names with a fixed meaning.
DEFAULT_PARTITION: Final = "default"
NOBODY_USER: Final = "nobody"
NOBODY_GROUP: Final = "nogroup"

# licorne's own (docs/spec/scheduler-interface.md, section 9): an ask's constraints, what it is as a pod, and its terms about
# other pods, as JSON; how long it takes to end (seconds, with a default); whether the age of an application leaves its
# placeholder timeout whole ("true"); a node's labels and taints as attributes.
TAG_NODE_CONSTRAINTS: Final = "licorne/node-constraints"
TAG_POD: Final = "licorne/pod"
TAG_POD_TERMS: Final = "licorne/pod-terms"
TAG_GRACE_PERIOD: Final = "licorne/termination-grace-period"
TAG_ENDING: Final = "licorne/ending"
TAG_WHOLE_TIMEOUT: Final = "licorne/whole-placeholder-timeout"
ATTRIBUTE_LABEL_PREFIX: Final = "label/"
ATTRIBUTE_TAINTS: Final = "taints"
SETTING_PRIORITY_CLASS_PREFIX: Final = "priority.class."
