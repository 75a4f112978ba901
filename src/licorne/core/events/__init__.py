"""Event records of what happened in a partition, for `licorne.host.web` and for resource managers that listen.

Events are derived from what the scheduler does anyway; nothing here takes a decision. Which there are, and in which
order, is in docs/spec/events.md, sections 1 to 4.

**What is derived from what.** The code that changes something leaves a *change record* where `Partition.events` is set,
and otherwise tests that one attribute. A change record is the object that has changed, with what cannot be seen of it
later: the owner of an allocation that ends, the amounts of an ask that may change. So nothing is looked up twice, and
nothing is noted before a change in order to be compared after it. The outputs of the partition are change records too:
they tell of new states, of accepted and rejected applications, and of new allocations. Some forty places leave one: each
is where the change is made, so where no events are wanted a change costs the test of an attribute.

**Order.** A *step* is the handling of an input, or of a run of asks without outputs, between `PartitionEvents.begin` and
`end`. Change records that are independent of the others become events at once: reservations, evictions, nodes, queues.
The others wait, with the outputs, until the order of their events is known, which is not the order of the changes
(section 3): `Changes` and `PartitionEvents.end` in `partition_events`, `Records.asked` in `records`. Outside of steps,
that is for timers and decisions, events come in the order of the changes.

**What is compared or inspected instead.** The properties of queues and limits, after a reload, with those that were
recorded last: the code that applies a configuration sets everything anew, and does not know what is different (`queues`,
`users`). Why an ask waits, once a second: decisions keep no more about waiting asks than they need (`notices`).

**Cost.** Records that come by the thousand are kept as *runs*, and expanded into events when they are read (`runs`).
Records wait in a bounded store, which is emptied for the resource manager every two seconds; what does not fit is
dropped and counted, because a slow listener must not exhaust the machine (`records`).

partition_events    change records, and which event records follow from them
records             how each kind of record is made, and the store in which records wait
runs                compact records that stand for many events of one kind
queues, users       records of queues, and of users and groups
notices             records about asks that wait, and applications that may not run
"""
