"""The files of a report: complete, the same for the same input, and a page that needs neither network nor script."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from common.plain_python import printed_by
from licorne import __version__, simulate
from licorne.lab.report import Collector, Figures, write_report
from report import faults
from report.workloads import small
from rings import first_in_gate

pytest.importorskip("matplotlib")
polars = pytest.importorskip("polars")

DATE = "2026-01-02 03:04 UTC"
ROW_FILES = ("cluster", "queues", "over-time", "nodes", "times", "guarantees", "never-placed")


def written(folder: Path, *labels: str) -> Path:
    runs: list[Figures] = []
    missing = {}
    for label in labels or ("small",):
        collector = Collector()
        runs.append(collector.figures(simulate(small(), observers=[collector]), label))
        missing[label] = collector.never_placed()
    write_report(folder, runs, never_placed=missing, made=DATE)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("one"))


class _Page(HTMLParser):
    """The start tags of a page; fails where an element is not closed."""

    VOID = frozenset(("meta", "br", "link", "img", "input", "hr"))

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(folder: Path) -> _Page:
    page = _Page()
    page.feed((folder / "report.html").read_text(encoding="utf-8"))
    assert page.open == []
    return page


def test_the_page_needs_neither_network_nor_script(folder: Path) -> None:
    page = parsed(folder)
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "iframe", "object", "embed", "base"}
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("src", "href", "xlink:href", "srcset", "action"):
                assert value is not None
                assert value.startswith("#"), (tag, value)
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert set(re.findall(r"url\(([^)]{1,3})", text)) <= {
        "#ut",
        "#pe",
        "#wa",
        "#co",
        "#sl",
        "#qu",
        "#gu",
        "#ev",
        "#no",
        "#ga",
    }
    assert "@import" not in text


def test_the_foot_has_what_a_citation_names(folder: Path) -> None:
    figures = msgspec.json.decode((folder / "report.json").read_bytes(), type=Figures)
    text = "".join(parsed(folder).text)
    assert f"Made by licorne {__version__}. {DATE}" in text
    assert f"small: licorne {__version__}, digest {figures.result['digest']}" in text
    assert text.count(figures.result["digest"]) == 2  # with the summary


def test_the_summary_has_a_row_for_each_queue(folder: Path) -> None:
    figures = msgspec.json.decode((folder / "report.json").read_bytes(), type=Figures)
    summary = (folder / "report.html").read_text(encoding="utf-8").partition('<section id="utilisation">')[0]
    assert [f'<td class="n">{row.name}</td><td>{row.pods:,}</td>' in summary for row in figures.by_queue] == [True] * 2


def test_identifiers_of_the_page_are_unique_and_those_referred_to_exist(folder: Path) -> None:
    page = parsed(folder)
    found = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(set(found)) == len(found)
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', text)) <= set(found)


def test_each_picture_has_a_table_and_a_png_and_is_there_wide_and_narrow(folder: Path) -> None:
    text = (folder / "report.html").read_text(encoding="utf-8")
    sections = re.findall(r'<section id="([^"]+)">(.*?)</section>', text, re.DOTALL)
    assert [name for name, _ in sections] == [
        "summary", "utilisation", "pending", "waiting", "completion", "slowdown", "queues", "fairness", "nodes",
        "never-placed", "gantt",
    ]  # fmt: skip
    for _, part in sections:
        pictures = part.count("<figure>")
        assert part.count("<svg") == 2 * pictures
        assert part.count("<details>") >= pictures
        assert "<table" in part
    assert text.count("<figure>") == len(list(folder.glob("*.png")))


def test_what_users_have_named_is_shown_as_text(folder: Path) -> None:
    page = parsed(folder)
    assert any("<bob> & co" in text for text in page.text)
    assert not any(tag == "bob" for tag, _ in page.tags)


def test_colours_are_those_of_the_page(folder: Path) -> None:
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in text
    assert "#0a0a0" not in text
    assert "#0a0b0" not in text
    defined = set(re.findall(r"(--[a-z0-9]+):", text))
    assert set(re.findall(r"var\((--[a-z0-9]+)\)", text)) <= defined


@pytest.mark.gate
def test_the_json_is_the_figures(folder: Path) -> None:
    figures = msgspec.json.decode((folder / "report.json").read_bytes(), type=Figures)
    assert figures.workload == "small"
    assert not {"real_s", "compiled", "pods"} & figures.result.keys()


def test_parquet_has_the_rows_of_csv(folder: Path) -> None:
    for name in ROW_FILES:
        table = polars.read_parquet(folder / f"{name}.parquet")
        text = polars.read_csv(folder / f"{name}.csv", schema=table.schema)
        assert table.equals(text), name
        assert table.height or name == "never-placed"


@pytest.mark.gate
def test_the_same_input_gives_the_same_files(folder: Path, tmp_path: Path) -> None:
    again = written(tmp_path / "again")
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted(path.name for path in again.iterdir())
    for name in names:
        if name.endswith(".parquet"):
            assert polars.read_parquet(folder / name).equals(polars.read_parquet(again / name)), name
        else:
            assert (folder / name).read_bytes() == (again / name).read_bytes(), name


@pytest.mark.nightly
def test_processes_of_different_seeds_of_hashes_write_the_same(tmp_path: Path) -> None:
    """The page, JSON and CSV byte for byte, PNG by pixels, Parquet by rows, which are those of the CSV as well."""
    assert faults.written_twice(tmp_path) == []
    assert len(list((tmp_path / "1").iterdir())) == 2 * len(ROW_FILES) + 2 + len(list((tmp_path / "2").glob("*.png")))


@pytest.mark.parametrize("fault", first_in_gate(faults.FAULTS))
def test_a_planted_fault_is_caught(fault: str) -> None:
    assert printed_by("report.faults", fault).startswith(f"{fault}: caught after ")


@pytest.mark.nightly
def test_only_the_date_on_the_page_is_of_the_time(folder: Path, tmp_path: Path) -> None:
    collector = Collector()
    figures = collector.figures(simulate(small(), observers=[collector]), "small")
    write_report(tmp_path, [figures])
    now, then = ((path / "report.html").read_text(encoding="utf-8") for path in (tmp_path, folder))
    assert now != then
    assert re.sub(r"<time>[^<]*</time>", f"<time>{DATE}</time>", now) == then


@pytest.mark.gate
def test_several_simulations_share_a_page(tmp_path: Path) -> None:
    both = written(tmp_path, "old", "new")
    text = (both / "report.html").read_text(encoding="utf-8")
    assert text.count("old:") > 3
    assert len(msgspec.json.decode((both / "report.json").read_bytes(), type=list[Figures])) == 2
    assert set(polars.read_parquet(both / "cluster.parquet")["run"]) == {"old", "new"}


@pytest.mark.gate
@pytest.mark.parametrize("labels", [[], ["same", "same"]])
def test_simulations_are_told_apart_by_their_labels(labels: list[str], tmp_path: Path, folder: Path) -> None:
    figures: Any = msgspec.json.decode((folder / "report.json").read_bytes(), type=Figures)
    with pytest.raises(ValueError, match="different labels"):
        write_report(tmp_path / "new", [msgspec.structs.replace(figures, label=label) for label in labels])
    assert not (tmp_path / "new").exists()
