"""Making pictures with matplotlib: the same data give the same bytes (SVG) and pixels (PNG).

A picture on the page is SVG of which the colours are variables of the page's style, so one picture serves light and dark.
matplotlib knows no variables: it draws with colours that occur nowhere else, and these are replaced afterwards. Each picture is
drawn twice, wide and narrow, because shrinking would make its text unreadable on a telephone.

Colours are those of Okabe and Ito, which people with any kind of colour vision tell apart; lines differ in their dashes too.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES = 6
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1.5, 1)),
    (0, (6, 1.5, 1.5, 1.5)),
    (0, (3, 1)),
    (0, (8, 2, 1, 2, 1, 2)),
)


class Theme(NamedTuple):
    """The colours of a picture: text and axes, lines of the grid, background, and those of data."""

    ink: str
    grid: str
    paper: str
    series: tuple[str, ...]


LIGHT = Theme("#1b1f24", "#d5d9de", "#ffffff", ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#3a8fbf"))
DARK = Theme("#e6e8eb", "#444b54", "#15181c", ("#56b4e9", "#ff8a3d", "#2fc79a", "#e3a0c6", "#f0c040", "#9ad0f5"))
_MARKS = Theme("#0a0a01", "#0a0a02", "none", tuple(f"#0a0b0{index}" for index in range(LINES)))
"""What matplotlib draws with for the page."""
_VARIABLES = {
    _MARKS.ink: "var(--ink)",
    _MARKS.grid: "var(--grid)",
    **{mark: f"var(--s{index})" for index, mark in enumerate(_MARKS.series)},
}
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "licorne",
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    "path.simplify": True,
}
WIDE_IN, NARROW_IN = 7.4, 3.6
PNG_DPI = 120


class Canvas:
    """What a picture is drawn on: a figure, its theme, and whether it is the narrow form.

    What has one name in several panels has one colour there, and one entry in the legend below.
    """

    def __init__(self, figure: Figure, theme: Theme, *, narrow: bool) -> None:
        self.figure = figure
        self.theme = theme
        self.narrow = narrow
        self._names: dict[str, int] = {}

    def line(self, name: str) -> dict[str, Any]:
        """Return label, colour and dashes of a line."""
        index = self._names.setdefault(name, len(self._names)) % LINES
        return {"label": name, "color": self.theme.series[index], "linestyle": DASHES[index]}

    def colour(self, name: str) -> str:
        """Return the colour of a name."""
        return self.theme.series[self._names.setdefault(name, len(self._names)) % LINES]

    def legend(self, columns: int = 4) -> None:
        """Explain below the panels what was drawn, each name once."""
        entries: dict[str, Any] = {}
        for axes in self.figure.axes:
            for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
                entries.setdefault(name, handle)
        if entries:
            across = max(1, columns // 2) if self.narrow else columns
            self.figure.legend(entries.values(), entries.keys(), loc="outside lower left", ncols=across)

    def panels(self, number: int, *, columns: int = 2, sharex: bool = False, sharey: bool = False) -> list[Axes]:
        """Return axes for a number of panels, side by side as far as there is room."""
        across = 1 if self.narrow else min(columns, number)
        down = -(-number // across)
        axes = self.figure.subplots(down, across, squeeze=False, sharex=sharex, sharey=sharey)
        found = [each for row in axes for each in row]
        for spare in found[number:]:
            spare.set_visible(False)
        return found[:number]


Draw = Callable[[Canvas], None]


def png(draw: Draw, height_in: float) -> bytes:
    """Draw a picture in light colours, as PNG."""
    figure = _drawn(draw, LIGHT, WIDE_IN, height_in, narrow=False)
    FigureCanvasAgg(figure)
    stream = io.BytesIO()
    with _styled(LIGHT):
        _lay_out(figure, PNG_DPI)
        figure.savefig(stream, format="png", dpi=PNG_DPI, metadata={"Software": None})
    return stream.getvalue()


def svg(draw: Draw, height_in: float, name: str, *, narrow: bool) -> str:
    """Draw a picture as an SVG element for a page that defines the colours; `name` makes its identifiers unique there."""
    figure = _drawn(draw, _MARKS, NARROW_IN if narrow else WIDE_IN, height_in, narrow=narrow)
    FigureCanvasSVG(figure)
    stream = io.StringIO()
    with _styled(_MARKS):
        _lay_out(figure, FigureCanvasSVG.fixed_dpi)
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _element(stream.getvalue(), f"{name}-{'n' if narrow else 'w'}")


def _lay_out(figure: Figure, dpi: int) -> None:
    """Compute the layout of a figure, once. `savefig` would draw the whole figure an additional time for that."""
    figure.set_dpi(dpi)
    engine = figure.get_layout_engine()
    assert engine is not None, "a figure is made with a layout"
    engine.execute(figure)
    figure.set_layout_engine(None)  # "none" would leave a stand-in, for which the figure is drawn once more, too


def _styled(theme: Theme) -> AbstractContextManager[None]:
    """Return a context in which matplotlib has the settings of a theme."""
    inks = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    settings: dict[Any, Any] = {
        **_SETTINGS,
        **dict.fromkeys(inks, theme.ink),
        "grid.color": theme.grid,
        "figure.facecolor": theme.paper,
        "axes.facecolor": "none",
        "savefig.facecolor": theme.paper,
    }
    return mpl.rc_context(settings)


def _drawn(draw: Draw, theme: Theme, width_in: float, height_in: float, *, narrow: bool) -> Figure:
    with _styled(theme):
        figure = Figure(figsize=(width_in, height_in), layout="constrained")
        draw(Canvas(figure, theme, narrow=narrow))
    return figure


def _element(text: str, name: str) -> str:
    """Return the element of an SVG file: with variables for colours, and only the identifiers that are referred to."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", text))
    text = re.sub(r' id="([^"]*)"', lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", text)
    text = re.sub(r"(url\(#|href=\"#)", rf"\g<1>{name}-", text)
    for mark, variable in _VARIABLES.items():
        text = text.replace(mark, variable)
    text = re.sub(
        r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" aria-hidden="true" focusable="false">', text
    )
    return re.sub(r"\n\s*", "\n", text).strip()


def colours(theme: Theme) -> str:
    """Return the variables of a page's style for a theme."""
    pairs: Sequence[tuple[str, str]] = [
        ("ink", theme.ink),
        ("grid", theme.grid),
        ("paper", theme.paper),
        *((f"s{index}", colour) for index, colour in enumerate(theme.series)),
    ]
    return " ".join(f"--{name}: {value};" for name, value in pairs)
