"""The benchmark of licorne alone, and of licorne compared with yunikorn-core: see README.md in this folder.

`python -m bench` is run from the root of the repository. The measuring itself is done in `bench.measure`; the rest
decides which cases are measured against which targets, each in a process of its own, and how figures are shown and kept.
"""
