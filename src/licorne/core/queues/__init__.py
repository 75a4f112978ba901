"""The objects that are scheduled: the queue tree, applications in its leaves, their asks, and what users may use.

tree            which queues exist, and what each may use
queue           a queue: its sums, share and priority, and its order among its siblings
application     an application: its asks and allocations
ask             an ask, which with a node is an allocation, and the shape of equal asks
requests        in which order an application's asks are tried
freed_nodes     nodes on which room was freed since searches found none, in place of a search of all nodes
priorities      the highest priority of what is pending
limits          limits of users and groups: which applications count for whom; `usage`: one tracker
bounds          the quotas and limits of an application, for people
usage_history   what applications have used until now, if a host wants it
cleaner         removes dynamic and draining queues once they are empty
"""
