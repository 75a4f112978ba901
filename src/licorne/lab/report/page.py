"""The page of a report: one HTML file with everything in it, which needs neither a network nor a script."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from licorne._version import __version__
from licorne.lab.report.drawing import DARK, LIGHT, Draw, colours, png, svg
from licorne.lab.report.sections import Plot, Section
from licorne.workload.finished import finished_file

if TYPE_CHECKING:
    from licorne.lab.report.figures import Figures


class _Drawn(NamedTuple):
    """A picture as SVG, once for wide screens and once for narrow ones."""

    caption: str
    wide: Markup
    slim: Markup


@cache
def _template() -> Template:
    loader = PackageLoader("licorne.lab.report", "")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    return environment.get_template("page.html.j2")


def page(
    title: str,
    lead: str,
    notes: Iterable[str],
    parts: Sequence[Section],
    runs: Sequence[Figures],
    *,
    made: str,
    progress: Callable[[], object] = bool,
) -> str:
    """Return the page of a report as HTML. `made`: its date, the only thing in it that is not of the data; if "", the present time.

    `progress` is called after each picture.
    """
    drawn = [(part, [_draw(plot, runs, progress) for plot in part.plots]) for part in parts]
    return _template().render(
        title=title,
        lead=lead,
        notes=list(notes),
        parts=drawn,
        light=Markup(colours(LIGHT)),  # noqa: S704  # colours of this program
        dark=Markup(colours(DARK)),  # noqa: S704
        version=__version__,
        runs=runs,
        made=made or f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )


def _draw(plot: Plot, runs: Sequence[Figures], progress: Callable[[], object]) -> _Drawn:
    draw = _of(plot, runs)
    wide = svg(draw, plot.height_in, plot.name, narrow=False)
    slim = svg(draw, plot.narrow_in, plot.name, narrow=True)
    progress()
    return _Drawn(plot.caption, Markup(wide), Markup(slim))  # noqa: S704  # matplotlib escapes the text in SVG


def _of(plot: Plot, runs: Sequence[Figures]) -> Draw:
    return lambda canvas: plot.draw(canvas, runs)


def write_pictures(folder: Path, parts: Sequence[Section], runs: Sequence[Figures]) -> None:
    """Write each picture as PNG into a folder. Raises OSError: a file cannot be written."""
    for part in parts:
        for plot in part.plots:
            with finished_file(folder / f"{plot.name}.png") as path:
                path.write_bytes(png(_of(plot, runs), plot.height_in))
