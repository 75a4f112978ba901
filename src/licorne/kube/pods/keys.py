"""The labels and annotations that users of YuniKorn write, and those of licorne (docs/spec/k8shim.md, sections 1 to 3)."""

from __future__ import annotations

from typing import Final

from licorne.si.constants import DOMAIN_YUNIKORN

# On pods. What is set first in the order of the documents counts.
APP_ID: Final = DOMAIN_YUNIKORN + "app-id"
QUEUE: Final = DOMAIN_YUNIKORN + "queue"
OLD_APP_ID: Final = "applicationId"
SPARK_APP_ID: Final = "spark-app-selector"
OLD_QUEUE: Final = "queue"
USER_INFO: Final = DOMAIN_YUNIKORN + "user.info"
USER_NAME: Final = DOMAIN_YUNIKORN + "username"
ALLOW_PREEMPTION: Final = DOMAIN_YUNIKORN + "allow-preemption"
TASK_GROUPS: Final = DOMAIN_YUNIKORN + "task-groups"
TASK_GROUP_NAME: Final = DOMAIN_YUNIKORN + "task-group-name"
GANG_PARAMETERS: Final = DOMAIN_YUNIKORN + "schedulingPolicyParameters"
PLACEHOLDER: Final = "internal.yunikorn.apache.org/placeholder"
PLACEHOLDER_DEVICES: Final = "licorne/placeholder-devices"
OLD_PLACEHOLDER: Final = DOMAIN_YUNIKORN + "placeholder"
OLD_PLACEHOLDER_LABEL: Final = "placeholder"
GANG_KIND: Final = "gang.scheduling"
UNIQUE_SUFFIX: Final = "-uniqueautogen"

# On namespaces.
NAMESPACE_QUOTA: Final = DOMAIN_YUNIKORN + "namespace.quota"
NAMESPACE_MAX_CPU: Final = DOMAIN_YUNIKORN + "namespace.max.cpu"
NAMESPACE_MAX_MEMORY: Final = DOMAIN_YUNIKORN + "namespace.max.memory"
NAMESPACE_GUARANTEED: Final = DOMAIN_YUNIKORN + "namespace.guaranteed"
NAMESPACE_MAX_APPS: Final = DOMAIN_YUNIKORN + "namespace.maxApps"
NAMESPACE_PARENT_QUEUE: Final = DOMAIN_YUNIKORN + "parentqueue"

# Tags of allocations, for people who look at them in REST.
TAG_POD_NAMESPACE: Final = "kubernetes.io/meta/namespace"
TAG_POD_NAME: Final = "kubernetes.io/meta/podName"
TAG_LABEL: Final = "kubernetes.io/label/"
TAG_IMAGE_PULL_SECRETS: Final = "imagePullSecrets"
