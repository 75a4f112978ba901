"""Preemption: which allocations are evicted, and for which ask (`docs/understand/preemption.md`).

Allocations are evicted for an ask whose queue is below its guarantee, for an ask that requires its node, and after a
quota was lowered (`docs/understand/quota-change.md`).

guarantee_preemption  preemption for a guarantee: when an ask tries it
eviction_plans        plans of evictions for asks that preempt together, and how they are carried out
retries               when a leaf queue whose searches failed may search again
planned_usage         what queues are guaranteed, and what they will use: who may preempt, who is protected
candidates            allocations that may be evicted, and the bounds by which most of them are ruled out
ranking               the order of victims: which of two victim sets is better, for every kind of preemption
node_search           all candidates of one moment, and the best victim set over all nodes
victim_search         the best victim set on one node
verdicts              what the verdict of a node would be without some victims, besides amounts
together              applications whose allocations are evicted together or not at all
disruption_budgets    how many allocations of a set may be evicted before they are replaced
claims                what is reserved for an ask while the victims that were evicted for it end
kept_off              where claims keep asks off for terms of pods, remembered
evictions             how an allocation is evicted, and the record of why
required_node         preemption on the node that an ask requires
quota_start           when a lowered quota is enforced
quota_cut             how much each leaf gives back after a quota was lowered
leaf_victims          which allocations of a leaf are evicted for that
"""
