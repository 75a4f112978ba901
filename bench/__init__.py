"""The benchmark of licorne, and of licorne beside yunikorn-core: see README.md in this folder.

`python -m bench` is run from the root of the repository. Measuring is `licorne.sim`'s part; what stands here is which
cases are measured, against which targets, each in a process of its own, and how the figures are shown and kept.
"""
