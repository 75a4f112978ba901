"""The parts of any long-running process: logs, signals, threads, and access control for its addresses.

descriptors     how many connections each port may have
listening       sockets on which servers listen, and why an address cannot be used
log             structured logs; `log_writer`: writing them without blocking; `process_log`: the logs of libraries
follower        a process that follows the scheduler and answers questions about it
threads         calls that may take long, in a bounded number of threads
memory          garbage collection at the moments when it costs least
pace            long work in small steps, so that the loop stays responsive
recording       recording all inputs of the scheduler
security        addresses, TLS, tokens; `secrets`: the files that have these; `guesses`: slowing down clients that guess tokens
setting_table   the settings of `licorne serve`, with their defaults; `shown_settings`: how settings are printed
signals         ending the process at a signal, within a time limit
notify          messages to systemd
web/            REST, metrics, events and health
"""
