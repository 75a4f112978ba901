"""The sums that decisions look at, and what wakes what waits.

Whatever changes a sum here wakes those for whom the change can make a difference; nothing else is tried again.

accounting      every sum that an ask or an allocation is part of is changed here
parking         what an ask waits for, and what ends that
sleepers        which applications and queues have something to try
"""
