"""Who is evicted for whom (`docs/preemption.md`).

For an ask below its queue's guarantee, for an ask that requires its node, and after a quota was lowered.

guaranteed      preemption for a guarantee: when it is tried, and what then happens
watches         which leaf queues are looked at, and when
guarantees      what is guaranteed to queues and what they will use
snapshot        what may be evicted at this moment, kept while only preemption changes it
candidates      allocations that may be evicted, and the bounds by which most are ruled out
node_search     the best victims over all nodes
victim_search   the best victims on one node
claims          what is kept for an ask for which others were evicted
evictions       how an allocation is asked to end, and what comes of it
required_node   preemption on the node that an ask requires
quota_start     when a lowered quota is enforced; `quota_cut`: how much is taken from which queue; `leaf_victims`: from whom
"""
