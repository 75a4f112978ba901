"""YAML files that people write: read as classes of msgspec, with all mistakes told at once, each with line and column.

Modules, from the top down: `repair` converts what was read and goes on without what is faulty; `reading` reads the YAML; `faults`
are the errors.
"""
