"""The notebooks of the examples run, and print what is stored in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from common.waiting import WAIT_S

pytestmark = pytest.mark.gate

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))
NEEDED = ("nbclient", "ipykernel", "polars", "matplotlib")


@pytest.mark.filterwarnings("default")  # other packages' warnings are none of ours
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_is_stored_in_it(path: Path) -> None:
    for name in NEEDED:
        pytest.importorskip(name, reason=f"{name} is not installed: pip install 'licorne[dev]'")
    import nbformat  # noqa: PLC0415  # comes with nbclient
    from nbclient import NotebookClient  # noqa: PLC0415  # of the extra `dev`, which may be missing

    read: Any = nbformat.read  # it has no types
    stored = read(path, as_version=4)
    nbformat.validate(stored)
    made = read(path, as_version=4)
    NotebookClient(made, timeout=WAIT_S, resources={"metadata": {"path": str(path.parent)}}).execute()
    assert [printed(cell) for cell in made.cells] == [printed(cell) for cell in stored.cells]
    assert any("image/png" in output.get("data", {}) for cell in stored.cells for output in cell.get("outputs", ())), (
        "no picture"
    )


def printed(cell: Any) -> list[str]:
    """What a cell has printed; pictures and the displays of tables differ from one version of their packages to the next."""
    return [output["text"] for output in cell.get("outputs", ()) if output["output_type"] == "stream"]


def test_there_are_notebooks() -> None:
    assert {path.stem for path in NOTEBOOKS} == {"compare_policies", "fairness"}
