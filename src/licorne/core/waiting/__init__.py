"""The sums that decisions depend on, and the wake-ups of asks and applications that wait.

A change of a sum wakes the applications to which it can make a difference; nothing else is tried again.

accounting      the one writer of every sum that an ask or an allocation is part of
parking         what a parked ask waits for, and which event ends that
sleepers        which applications and queues are awake, that is, have something to try
"""
