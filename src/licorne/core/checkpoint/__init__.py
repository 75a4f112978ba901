"""Checkpoints: the whole state of a scheduler at one moment, as bytes, and the scheduler that it is restored to.

Programs use `SchedulerAPI.checkpoint` and `SchedulerAPI.restore_checkpoint`. Modules: `take` and `restore` are the two ways;
`contract` says what the state consists of, `tables` and `kinds` how it is written, by `columns`; `check` looks at the numbers
that compiled code trusts. The format is described in docs/reference/checkpoint.md.
"""

from __future__ import annotations

from .columns import CheckpointError

__all__ = ["CheckpointError"]
