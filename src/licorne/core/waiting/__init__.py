"""The sums that decisions depend on, and the wake-ups of asks and applications that wait.

A change of a sum wakes the applications to which it can make a difference; nothing else is tried again.

accounting      the one writer of every sum that an ask or an allocation is part of
wakeups         the events that can make a waiting ask runnable, and what is tried again after each
parking         which applications and asks wait, what for, and how they are found again
"""
