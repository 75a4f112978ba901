"""What counts the instructions of a question: it says what is missing, and takes away what an idle service makes."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from bench import questions
from bench.run import BenchError


def test_without_valgrind_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(BenchError, match="valgrind is not installed"):
        questions.count_questions()


def test_a_count_is_that_of_the_first_thread_without_what_is_made_by_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out.7.1-01").write_text("totals: 999999999\n")  # of a count before

    def control(_: questions._Counts, option: str) -> None:
        if option == "--dump":
            (tmp_path / "out.7.2-01").write_text("version: 1\ntotals: 5000000\n")
            (tmp_path / "out.7.2-02").write_text("version: 1\ntotals: 77\n")

    monkeypatch.setattr(questions._Counts, "control", control)
    assert questions._Counts(7, tmp_path / "out").of(lambda: None, 0.0) == 5_000_000
    (tmp_path / "out.7.2-01").unlink()
    assert questions._Counts(7, tmp_path / "out").of(lambda: time.sleep(0.2), 10_000_000.0) <= 3_000_000
