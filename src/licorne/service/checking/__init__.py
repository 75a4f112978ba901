"""Queue configurations are read and checked outside the loop of the scheduler, because that may take long.

checks          in processes of their own, which can be ended; `check_process`: such a process
queue_texts     with the limit on the number of queues
prepared        a configuration is read before the scheduler wants it
"""
