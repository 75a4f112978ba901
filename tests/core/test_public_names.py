"""The public names of the package can be found by those who look for them."""

from __future__ import annotations

import pydoc
import re

import licorne


def test_completion_shows_the_public_names_alone() -> None:
    assert dir(licorne) == sorted(licorne.__all__)


def test_the_help_of_the_package_describes_what_it_offers() -> None:
    text = pydoc.plain(pydoc.render_doc(licorne))
    for name in set(licorne.__all__) - {"__version__"}:
        assert f"class {name}(" in text or f"\n    {name}(" in text, name
    # From Python 3.13 on, a long signature has a line for each parameter, behind a bar.
    assert "update_allocation(self,request" in re.sub(r"[\s|]+", "", text)
