"""How pictures are drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from matplotlib.figure import Figure

from licorne.lab.report.drawing import Canvas, png, svg

if TYPE_CHECKING:
    from matplotlib.backend_bases import RendererBase


def _line(canvas: Canvas) -> None:
    (axes,) = canvas.panels(1)
    axes.plot([0, 1], [0, 1], **canvas.line("a"))
    canvas.legend()


@pytest.mark.parametrize(
    "draw", [lambda: png(_line, 2.0), lambda: svg(_line, 2.0, "name", narrow=True)], ids=["png", "svg"]
)
def test_a_figure_is_drawn_once(draw: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """`savefig` draws a figure in vain before it is written, if a layout may still change it; that is a fifth of the time."""
    drawn = []
    real = Figure.draw

    def counted(self: Figure, renderer: RendererBase) -> None:
        drawn.append(renderer)
        real(self, renderer)

    monkeypatch.setattr(Figure, "draw", counted)
    draw()
    assert len(drawn) == 1
