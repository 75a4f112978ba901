"""The rules that a configuration can break, under the names that problems use.

The names are part of the public interface: they stay as they are. `docs/reference/config-rules.md` is this table;
`docs/generate_config_rules.py` writes it, and a test compares the two.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec


class Rule(msgspec.Struct, frozen=True):
    """A rule: whether breaking it refuses the configuration, what it says, and where the rule comes from."""

    identifier: str
    fault: bool
    meaning: str
    source: str


_FAULTS: Final = (
    ("yaml-syntax", "The text is YAML.", "config 1.1"),
    ("yaml-size", "At most 4 MiB of text and a million values, aliases written out.", "licorne"),
    ("yaml-depth", "Lists and mappings are nested at most 100 levels deep.", "licorne"),
    ("yaml-anchor", "An alias names an anchor that stands before it and does not contain it.", "config 1.1"),
    ("yaml-aliases", "A document does not consist of aliases almost wholly.", "config 1.1"),
    ("yaml-merge", "A merge key `<<` takes a mapping or a list of mappings.", "config 13.7"),
    ("yaml-key-unknown", "Every key is one of those of its place, in lower case.", "config 1.1, 1.2"),
    ("yaml-key-duplicate", "A mapping has each key once.", "config 1.1"),
    ("yaml-type", "Every value has the type of its key.", "config 1.1, 13.4 to 13.6"),
    (
        "configmap",
        "A ConfigMap has texts, or packed under `binaryData`, and a queue configuration under `queues.yaml`.",
        "config 12",
    ),
    ("partition-duplicate", "Partitions have different names; case makes no difference.", "config 5.1"),
    ("queues-missing", "A partition has a list of queues, if only an empty one.", "config 5.1"),
    ("root-spelling", "The root queue is spelled `root`.", "config 5.1, 5.10"),
    ("root-resources", "The root queue has no resources of its own.", "config 5.1"),
    ("queue-name", "A queue name is 1 to 64 letters, digits and any of `- _ # @ / :`.", "config 3"),
    ("queue-duplicate", "Siblings have different names; case makes no difference.", "config 5.3"),
    ("acl-parts", "An access control list is users, one blank, groups; no more parts.", "config 5.3, 5.10, 8"),
    ("quantity-invalid", "A quantity is digits and a suffix: no sign, point or exponent.", "config 4"),
    ("quantity-suffix", "The suffix is one that the resource type has; `m` is for `vcore` alone.", "config 4"),
    ("quantity-overflow", "A quantity is at most 2**63 - 1 in its base unit.", "config 4"),
    ("resource-types", "A configuration names at most 1,024 resource types.", "licorne"),
    ("guaranteed-above-max", "A queue is not guaranteed more than its max.", "config 5.4"),
    ("max-above-parent", "The max of a queue is not above an ancestor's.", "config 5.4"),
    ("guaranteed-sum-above-parent", "Children together are not guaranteed more than their parent.", "config 5.4"),
    ("guaranteed-sum-above-max", "Children together are not guaranteed more than the parent's max.", "config 5.4"),
    ("limit-partition-root", "Limits of the partition and of root, if both are given, are the same.", "config 5.2"),
    ("limit-nobody", "A limit names users or groups.", "config 5.5"),
    ("limit-empty", "A limit has maxresources or maxapplications.", "config 5.5"),
    ("limit-zero", "A limit on resources has one value above zero.", "config 5.5"),
    ("limit-name", "Users and groups of a limit have legal names, or are `*`.", "config 3, 5.5"),
    ("limit-duplicate", "A user or group has one limit in a queue.", "config 5.5"),
    ("limit-after-wildcard", "The wildcard comes last in the limits of a queue.", "config 5.5"),
    ("limit-group-wildcard-alone", "A wildcard for groups comes after a named group.", "config 5.5"),
    ("limit-above-queue-applications", "A limit is not above the queue's maxapplications.", "config 5.5"),
    ("limit-above-queue-max", "A limit is not above the queue's max.", "config 5.5"),
    ("limit-above-parent-max", "A user or group may not use more than in a queue above.", "config 5.9"),
    (
        "limit-above-parent-applications",
        "A user or group may not have more applications than in a queue above; none set means unlimited.",
        "config 5.9",
    ),
    (
        "max-applications-above-parent",
        "The maxapplications of a queue is set, and not above, where its parent's is set.",
        "config 5.8",
    ),
    ("rule-name", "The name of a placement rule is letters, digits and `_`.", "placement 7.1"),
    ("filter-type", "A filter's type is allow or deny.", "placement 7.1"),
    ("filter-entry", "A filter's single entry is a legal name or a regular expression (RE2).", "placement 7.1"),
    ("rule-fixed-parent", "A `fixed` rule with a full path has no parent rule.", "placement 7.2"),
    ("rule-path-below-leaf", "A `fixed` rule does not lead below a leaf.", "placement 7.3"),
    ("rule-path-missing", "Without create, a `fixed` rule leads to a configured queue.", "placement 7.3"),
    ("rule-path-leaf", "A `fixed` rule that is a parent leads to a queue with `parent: true`.", "placement 7.3"),
    ("rule-path-not-leaf", "A `fixed` rule by itself leads to a leaf.", "placement 7.3"),
    ("node-sort-policy", "The node sorting policy is fair or binpacking, in lower case.", "config 5.7"),
    ("node-sort-weight", "A weight is a finite number, not below zero.", "config 5.7, 13.6"),
    (
        "property-simulation",
        "Only a simulation has the properties `simulation.order` and `simulation.backfill`, with legal values.",
        "licorne",
    ),
)

_WARNINGS: Final = (
    ("cluster-guarantees", "With `--from`: the guarantees are not more than all nodes have.", "licorne"),
    (
        "cluster-unbound",
        "With `--from`: a max or limit is lower than what the nodes and the queues above give anyway.",
        "licorne",
    ),
    ("pod-above-limit", "With `--from`: no pod takes more than the limit of its user.", "licorne"),
    ("pod-above-max", "With `--from`: no pod takes more than the max of a queue that it is in.", "licorne"),
    (
        "queue-idle",
        "With `--from`: of the applications that are in a queue or name one, some are in each queue or below it.",
        "licorne",
    ),
    ("queue-missing", "With `--from`: the queues of applications are configured, or a rule creates them.", "licorne"),
    (
        "rule-idle",
        "With `--from` and a workload or a recording: each placement rule places some application of it.",
        "licorne",
    ),
    ("queue-unreached", "With `--from`: a placement rule leads to each leaf, or something is in it.", "licorne"),
    (
        "config-empty",
        "A configuration without a partition has room for nothing; a reload with it is refused.",
        "licorne",
    ),
    (
        "document-ignored",
        "Only the first document of a file counts, unless it is an object of Kubernetes.",
        "config 13.7",
    ),
    (
        "configmap-key",
        "The queue configuration is under the key `<service.policyGroup>.yaml`, which is `queues.yaml` if not set.",
        "config 12",
    ),
    (
        "setting-unknown",
        "A setting beside a queue configuration has a name that YuniKorn or licorne reads.",
        "config 12",
    ),
    (
        "setting-value",
        "A setting that does not parse means its default, or refuses all that stand beside it.",
        "config 12",
    ),
    ("key-shown", "What REST shows beside the running configuration is no part of it, and is passed over.", "licorne"),
    ("null-dropped", "An empty element of a list is left out.", "config 13.2"),
    ("number-spelling", "A number in another spelling means what it says: `010` is 8, `1.9` is 1.", "config 13.4"),
    ("partition-name-qualified", "A partition name that starts with `[` is taken as qualified.", "config 1.7"),
    ("resolver-unknown", "An unknown type of user group resolver is none.", "config 2"),
    ("weights-zero", "Where all weights are zero, all nodes have the same score.", "scheduling 7.5"),
    (
        "offset-fenced",
        "A priority offset is not hidden by a priority fence above it, below which no other queue is compared with it.",
        "scheduling 4.2",
    ),
    (
        "rule-unreached",
        "No placement rule comes after a `fixed` one without a filter to a leaf that is open to all: that one takes everything.",
        "placement 5",
    ),
    ("queue-recovery", "`@recovery@` is the scheduler's own queue and not to be configured.", "config 3"),
    ("resources-zero", "A max or guaranteed of zeros alone counts as not set.", "config 4.1"),
    (
        "resource-name",
        "Cores are `vcore` and memory is `memory`; amounts of `cpu` or `mem` have no effect.",
        "config 4",
    ),
    ("memory-unit", "A maximum of memory without a unit is in bytes.", "config 4"),
    (
        "guaranteed-sum-lost",
        "A queue's own guarantee hides from its ancestors what its children are guaranteed of other types.",
        "config 5.4",
    ),
    ("template-on-leaf", "A child template on a leaf does nothing.", "config 9"),
    ("template-empty", "A child template that says nothing counts as not written.", "config 9"),
    (
        "root-max-applications",
        "A changed maxapplications of root takes effect at a reload; the original keeps the first.",
        "config 6.2",
    ),
    ("acl-name-dropped", "An entry that is no legal name is left out of an access control list.", "config 8"),
    ("acl-blank", "A blank after a comma begins the groups of an access control list.", "config 8"),
    (
        "acl-open-above",
        "Where everybody may submit to a queue, the access control lists below it keep nobody out.",
        "config 8",
    ),
    (
        "acl-open-admin",
        "Where everybody may administer a queue, everybody may submit to it and those below.",
        "config 8",
    ),
    ("acl-groups-ignored", "Where the users of an access control list are `*`, its groups say nothing.", "config 8"),
    (
        "limit-capitals",
        "Limits on or below a queue spelled with capitals are applied; in the original they never are.",
        "config 6.6",
    ),
    ("property-unknown", "An unknown property says nothing.", "config 7"),
    ("property-value", "A bad value of a property falls back to the default.", "config 7"),
    (
        "sort-policy-stateaware",
        "The policy stateaware is fifo, unless the resource manager has `application.state.starting` on.",
        "config 7, states 4",
    ),
    ("quota-preemption-off", "A quota preemption delay needs the partition's quotapreemptionenabled.", "config 7"),
    (
        "filter-type-case",
        "A filter type in capitals is taken at its word; the original takes it for allow.",
        "placement 3",
    ),
    ("filter-deny-everybody", "A deny filter without lists blocks everybody.", "placement 3"),
    ("filter-nothing-legal", "A filter of which no entry is legal finds nobody.", "placement 3"),
    ("filter-entry-dropped", "In a list of several entries those that are no legal names are left out.", "placement 3"),
    ("filter-unanchored", "A regular expression matches anywhere in a name unless it is anchored.", "placement 3"),
    (
        "rule-unknown",
        "With a rule of an unknown name the partition's rules are unusable: every application is rejected.",
        "config 5.11",
    ),
    ("rule-recovery", "The rule `recovery` is not for configurations; the rules are unusable with it.", "config 5.11"),
    ("rule-value-missing", "`fixed` and `tag` need a value; the rules are unusable without it.", "config 5.11"),
    (
        "rule-value-name",
        "Each part of a fixed value is a legal queue name, else the rules are unusable.",
        "placement 2",
    ),
    (
        "rule-full-path-parent",
        "A fixed value that starts with `root` with a parent makes the rules unusable.",
        "placement 2",
    ),
    ("rule-value-outside-root", "A fixed path that starts with `root` but not at root leads nowhere.", "placement 5"),
)

RULES: Final[dict[str, Rule]] = {
    identifier: Rule(identifier, fault, meaning, source)
    for fault, table in ((True, _FAULTS), (False, _WARNINGS))
    for identifier, meaning, source in table
}


def rules_page() -> str:
    """Return the table of all rules as a Markdown page."""
    parts = [
        "# Rules of a configuration",
        "",
        "A problem that `licorne config check` reports ends with the name of the rule that is broken. A broken rule of",
        "the first table refuses the configuration. The second table is of what is legal, but surely not meant, or means",
        "something else in YuniKorn. The right column names the file of the [specification](../spec/README.md) and the",
        "section; `licorne` stands where the rule is licorne's own.",
        "",
        "Made from the table in `src/licorne/config/rules.py` by `docs/generate_config_rules.py`; a test compares the two.",
    ]
    for title, fault in (("Faults", True), ("Warnings", False)):
        parts += ["", f"## {title}", "", "| rule | what it says | source |", "|---|---|---|"]
        parts += [
            f"| `{r.identifier}` | {r.meaning} | {_linked(r.source)} |" for r in RULES.values() if r.fault == fault
        ]
    return "\n".join(parts) + "\n"


def _linked(source: str) -> str:
    """Return the source of a rule as Markdown, with a link to the file of the specification."""
    return re.sub(r"\b(config|placement|scheduling|states)(?= \d)", r"[\1](../spec/\1.md)", source)
