"""Workloads from what others have recorded: traces, logs of batch systems, recordings of the scheduler.

openb       the trace of a GPU cluster (docs/use/simulator.md)
swf         logs in the Standard Workload Format, read and written; `swf_log` makes one of a simulation's outcome
batch       a workload of such a log
gpu_csv     tables of jobs in CSV, by a mapping of their columns (`columns`; those in `mappings` come with the package)
tables      reads the rows of tables in CSV
recorded    a workload of a recording of licorne
"""
