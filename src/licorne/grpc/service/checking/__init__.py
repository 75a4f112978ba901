"""Reading and checking queue configurations outside the loop of the scheduler, because it may take seconds.

prepared        reads a configuration before the scheduler asks for it
checks          reads and checks in processes, which can be killed; `check_process`: what runs in each of them
queue_texts     reads a configuration with the limit on the number of queues
"""
