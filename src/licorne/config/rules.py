"""The names of the rules that a configuration can break; what each says stands in `docs/reference/config-rules.md`.

The names are part of the public interface: they stay as they are. A test compares them with the page.
"""

from __future__ import annotations

from typing import Final

_OF_FAULTS: Final = """
yaml-syntax yaml-size yaml-depth yaml-anchor yaml-aliases yaml-merge yaml-key-unknown yaml-key-duplicate
yaml-type configmap partition-duplicate queues-missing root-spelling root-resources queue-name queue-duplicate
acl-parts quantity-invalid quantity-suffix quantity-overflow resource-types guaranteed-above-max
max-above-parent guaranteed-sum-above-parent guaranteed-sum-above-max limit-partition-root limit-nobody
limit-empty limit-zero limit-name limit-duplicate limit-after-wildcard limit-group-wildcard-alone
limit-above-queue-applications limit-above-queue-max limit-above-parent-max limit-above-parent-applications
max-applications-above-parent rule-name filter-type filter-entry rule-fixed-parent rule-path-below-leaf
rule-path-missing rule-path-leaf rule-path-not-leaf node-sort-policy node-sort-weight property-simulation
"""
FAULT_RULES: Final = frozenset(_OF_FAULTS.split())
"""The rules that refuse the configuration when they are broken."""

_OF_WARNINGS: Final = """
cluster-guarantees cluster-unbound pod-above-limit pod-above-max queue-idle queue-missing rule-idle
queue-unreached usage-above-max config-empty document-ignored configmap-key setting-unknown setting-value key-shown null-dropped
number-spelling partition-name-qualified resolver-unknown weights-zero offset-fenced rule-unreached
queue-recovery resources-zero resource-name memory-unit guaranteed-sum-lost template-on-leaf template-empty
root-max-applications acl-name-dropped acl-blank acl-open-above acl-open-admin acl-groups-ignored limit-capitals
property-unknown property-value sort-policy-stateaware quota-preemption-off filter-type-case
filter-deny-everybody filter-nothing-legal filter-entry-dropped filter-unanchored rule-unknown rule-recovery
rule-value-missing rule-value-name rule-full-path-parent rule-value-outside-root
"""
WARNING_RULES: Final = frozenset(_OF_WARNINGS.split())
"""The rules for what is legal, but surely not meant, or means something else in YuniKorn."""
