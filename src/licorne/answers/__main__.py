"""Answers one question about a state dump: `python -m licorne.answers QUESTION <dump`, both JSON; prints the answer as JSON.

A service asks in a process of its own (`licorne.answers.process`), so that neither the restored scheduler nor the trials
take time or memory of the one that decides. Exit status: 0; 1 if the question has no answer, which standard error says.
"""

from __future__ import annotations

import sys
import time

import msgspec

from licorne._bounded import DUMP_BYTES, TooLargeError, read_all
from licorne.answers.process import Question, answer_to
from licorne.state.copies import CopyError
from licorne.state.dump import DumpError, read_dump
from licorne.state.recording import RecordingError
from licorne.state.restore import restore
from licorne.state.restored import UnknownNameError


def main(question: Question) -> None:
    """Print the answer to the question."""
    restored = restore(read_dump(read_all(sys.stdin.buffer.read, DUMP_BYTES)))
    until = time.monotonic() + question.limit_s
    answer = answer_to(question, restored, lambda: time.monotonic() < until)
    sys.stdout.buffer.write(msgspec.json.encode(answer))


if __name__ == "__main__":
    try:
        main(msgspec.json.decode(sys.argv[1], type=Question))
    except (DumpError, TooLargeError, UnknownNameError, CopyError, RecordingError) as error:
        sys.exit(str(error))
