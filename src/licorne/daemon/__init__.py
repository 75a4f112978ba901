"""What a process that runs for long needs, whatever it serves: logs, signals, threads, addresses and who may use them.

log             structured logs; `log_writer`: nobody waits for whoever reads them; `process_log`: what libraries log
lookups         work that takes long, in threads of which there is a bounded number
pace            work in small steps, so that the loop stays free
regular         files are read only if they are files
security        addresses, TLS, tokens; `guesses`: a brake on those who are refused
signals         the signals that end a process, in time whatever it does
notify          what systemd wants to know
"""
