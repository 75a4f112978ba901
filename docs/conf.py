"""The documentation site: `make docs` makes it of the pages of the repository, without a network.

Sphinx, because it is maintained, checks every link inside the site, and makes the reference of the Python interface from
docstrings; MyST reads the Markdown pages as they are, and Furo is a theme that needs nothing from other hosts. The source
folder is the root of the repository, so that a link means the same here as in the repository.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

os.environ["LICORNE_INTERPRETED"] = "1"  # compiled modules have no signatures and no order of members

from docutils import nodes

import licorne
import licorne.grpc.service
import licorne.sim
import licorne.workload

if TYPE_CHECKING:
    from sphinx.application import Sphinx

for module in (licorne, licorne.sim, licorne.workload, licorne.grpc.service):
    for name in module.__all__:  # names that are loaded when they are first used
        setattr(module, name, getattr(module, name))

project = "licorne"
author = "the licorne developers"
version = release = licorne.__version__
html_title = f"licorne {release}"
root_doc = "docs/index"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]  # napoleon: sections such as "Parameters:"
include_patterns = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "bench/README.md",
    "conformance/README.md",
    "controlplane/README.md",
    "deploy/**.md",
    "docs/**.md",
    "examples/**.md",
    "oracle/README.md",
    "yunikorn/README.md",
]
exclude_patterns = [".*", "build", "dist", "src", "tests", "tools", "typings", "**/node_modules"]

# Markdown as the repository's host reads it: anchors of all headings; a link to a file that is no page leads to a copy.
myst_heading_anchors = 6
myst_enable_extensions = ["attrs_inline"]
suppress_warnings = [
    "ref.python"
]  # `type` in an annotation is the built-in one, and some messages have a field of that name
highlight_language = "none"

# Docstrings are plain text with names in backticks.
default_role = "literal"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "undoc-members": True, "show-inheritance": False}
autodoc_use_type_comments = False
napoleon_use_ivar = True  # "Attributes:" of a docstring is a list there, not a second description of each member
python_use_unqualified_type_names = True

html_theme = "furo"
html_static_path = ["site"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": False}

INDEX = "docs/index"
CHAPTERS = {
    "docs/reference/python": "docs/reference/python/*",
    "docs/spec/README": "docs/spec/*",
    "examples/README": "examples/*/README",
}
"""Pages with pages below them, which are found by this pattern."""


def setup(app: Sphinx) -> None:
    """Connect what is below to the steps of a build."""
    app.connect("source-read", add_contents)
    app.connect("source-read", number_differences)
    app.connect("doctree-resolved", note_external_links)
    app.connect("build-finished", write_external_links)
    app.connect("build-finished", make_accessible)


def add_contents(_app: Sphinx, page: str, source: list[str]) -> None:
    """Make the site's contents of the list of documents: each of its sections is a group, with the pages that it links."""
    if page in CHAPTERS:
        source[0] += _contents("", [f"/{CHAPTERS[page]}"], ":glob:\n")
    if page != INDEX:
        return
    for section in source[0].split("\n## ")[1:]:
        caption = re.split(r"[:\n]", section, maxsplit=1)[0]
        links = re.findall(r"\]\(([^)#]+)\.md(?:#[^)]*)?\)", section)
        pages = [os.path.normpath(f"/docs/{link}") for link in dict.fromkeys(links)]
        source[0] += _contents(caption, pages)


def _contents(caption: str, pages: list[str], options: str = "") -> str:
    told = f":caption: {caption}\n" if caption else ""
    return f"\n```{{toctree}}\n:hidden:\n{told}{options}\n" + "\n".join(pages) + "\n```\n"


external: dict[str, set[str]] = {}
"""The addresses of other hosts that pages link, each with these pages. They are listed, not called."""


def note_external_links(_app: Sphinx, tree: nodes.document, page: str) -> None:
    """Note the links of a page that lead to other hosts."""
    for link in tree.findall(nodes.reference):
        address = link.get("refuri", "")
        if address.startswith(("http:", "https:")):
            external.setdefault(address, set()).add(page)


def write_external_links(app: Sphinx, error: Exception | None) -> None:
    """Write the list of links to other hosts beside the site."""
    if error is None:
        lines = (f"{address}\t{' '.join(sorted(pages))}\n" for address, pages in sorted(external.items()))
        Path(app.outdir).with_name("external-links.txt").write_text("".join(lines), encoding="utf-8")


def number_differences(_app: Sphinx, page: str, source: list[str]) -> None:
    """Give each row of the table of differences an address of its own, and let links of the form `[difference 7](…)` lead there."""
    if page == "docs/reference/differences":
        source[0] = re.sub(r"(?m)^\| (\d+) \|", r"| [\1]{#difference-\1} |", source[0])
    source[0] = re.sub(
        r"\[difference (\d+)\]\(([^)#]*differences\.md)\)", r"[difference \1](\2#difference-\1)", source[0]
    )


ACCESSIBLE = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Contents">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="This page">',
    '<aside class="toc-drawer no-toc">': '<aside class="toc-drawer no-toc" aria-label="This page">',
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper colwidths-auto docutils container">': '<div class="table-wrapper docutils container" tabindex="0">',
    '<th class="head"><p></p></th>': '<td class="head"></td>',
    '<div id="search-results"></div>': '<h1>Search</h1>\n<div id="search-results"></div>',
}
"""What the theme lacks for those who use a keyboard or hear a page, and what it should have: names, levels, a way to scroll."""


def make_accessible(app: Sphinx, error: Exception | None) -> None:
    """Add to the pages what the theme lacks."""
    if error is None:
        for path in Path(app.outdir).rglob("*.html"):
            text = path.read_text(encoding="utf-8")
            for lacking, accessible in ACCESSIBLE.items():
                text = text.replace(lacking, accessible)
            path.write_text(text, encoding="utf-8")
