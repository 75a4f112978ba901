"""What pods, nodes and namespaces mean to the scheduler. Pure: objects in, messages of the scheduler out.

- `work`: a pod that licorne schedules, as application and ask; `task_groups`: its gang; `groups`: its native pod group; `resources`: how much it takes;
  `constraints`: where it may run; `terms`: what it demands of other pods; `spreading`: the default spread of its workload;
  `selectors`: which labels a selector means.
- `volumes`: what its volumes demand; `matching`: which volume a claim would get; `storage`: what is known of volumes;
  `in_tree`: volumes of old plugins, as the drivers know them that have replaced those.
- `devices`: what its claims of devices demand, and what they get; `device_claims`: which claims it names; `device_search`: which
  devices of a node; `device_answers`: what searches have found; `device_pools`: the devices that there are; `device_selectors`:
  conditions on devices; `extended`: the claim for extended resources.
- `namespaces`: quotas from annotations.
- `foreign`: a pod of another scheduler; `nodes`: a node.
- `keys`: labels and annotations; `misspelled`: those that mean nothing.
"""
