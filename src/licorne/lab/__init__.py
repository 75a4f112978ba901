"""The laboratory: what research needs beside the simulator.

sweep/          many simulations: which points there are, running them by processes, their table and page
report/         reports of simulations: pictures, tables and one page
papers/         the tables of published papers, made again
processes       calls of a function for many arguments, each in a process of its own
"""
