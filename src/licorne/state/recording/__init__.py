"""The recording of a scheduler: all its inputs, from which the same decisions can be computed again.

    Recorder, Bounds   records a scheduler within its process: `api.input_log = Recorder(Path("recording"))`
    Counts             what has been written
    Names              replaces names of users and groups by digests: `Recorder(folder, names=Names())`
    Run, list_runs     the runs of a recording; `choose_run` takes one by its number or its time
    Replay, Outcome    a scheduler that is given the inputs of a run once more, and what that has given
    replay_from        a repetition that begins at the newest checkpoint before a time; `add_checkpoint` writes one
    RecordingError     a folder is no recording that can be used; `DivergedError`: the decisions were others

Modules: `noting` takes the inputs from the scheduler; `recorder` hands them to the thread of `writer`; `replay` repeats them.
`anonymous` replaces names of users. `entries` defines what an input looks like in a recording, `digest` the digest of
decisions by which a repetition is checked, `checkpoints` the states within a run and `checkpointer` what has them written,
`folder` the folder with its manifest, `runs` which run holds a moment, `moments` how people write one, `blocks` the files of
compressed blocks with checksums, `bounds` how large all this may become and `retention` what is removed then. The format is described in docs/reference/recording.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne._lazy import lazy_names

if TYPE_CHECKING:
    from licorne.state.recording.anonymous import Names
    from licorne.state.recording.bounds import Bounds
    from licorne.state.recording.folder import RecordingError
    from licorne.state.recording.recorder import Recorder
    from licorne.state.recording.replay import DivergedError, Outcome, Replay, add_checkpoint, replay_from
    from licorne.state.recording.runs import Run, choose_run, list_runs
    from licorne.state.recording.writer import Counts

__all__ = [
    "Bounds",
    "Counts",
    "DivergedError",
    "Names",
    "Outcome",
    "Recorder",
    "RecordingError",
    "Replay",
    "Run",
    "add_checkpoint",
    "choose_run",
    "list_runs",
    "replay_from",
]

_WHERE = {
    "Bounds": "licorne.state.recording.bounds",
    "Counts": "licorne.state.recording.writer",
    "DivergedError": "licorne.state.recording.replay",
    "Names": "licorne.state.recording.anonymous",
    "Outcome": "licorne.state.recording.replay",
    "Recorder": "licorne.state.recording.recorder",
    "RecordingError": "licorne.state.recording.folder",
    "Replay": "licorne.state.recording.replay",
    "Run": "licorne.state.recording.runs",
    "add_checkpoint": "licorne.state.recording.replay",
    "choose_run": "licorne.state.recording.runs",
    "list_runs": "licorne.state.recording.runs",
    "replay_from": "licorne.state.recording.replay",
}

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name of this module
    __getattr__, __dir__ = lazy_names(__name__, _WHERE)
