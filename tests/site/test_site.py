"""The documentation site is made without a warning, and a dead link is an error (`make docs`)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from common.once import made_once
from common.website import ROOT, build, build_whole

pytestmark = pytest.mark.gate

pytest.importorskip("sphinx", reason="`make docs` needs Sphinx, of the extra dev")


def test_the_site_is_made_without_a_warning(tmp_path_factory: pytest.TempPathFactory) -> None:
    made = made_once(tmp_path_factory, "site", build_whole)
    pages = {path.relative_to(made / "html").as_posix() for path in (made / "html").rglob("*.html")}
    assert {
        f"{name}.html" for name in ("README", "docs/index", "docs/reference/commands", "docs/understand/journey")
    } <= pages
    api = (made / "html/docs/reference/python/licorne.html").read_text(encoding="utf-8")
    for name in ("SchedulerAPI.update_allocation", "ResourceManagerCallback.update_node", "simulate"):
        assert f'id="licorne.{name}"' in api, name
    differences = (made / "html/docs/reference/differences.html").read_text(encoding="utf-8")
    assert 'id="difference-1"' in differences
    spec = (made / "html/docs/spec/rest-api.html").read_text(encoding="utf-8")
    assert 'href="../reference/differences.html#difference-105"' in spec
    assert "https://semver.org\tdocs/reference/versions\n" in (made / "external-links.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("link", "said"),
    [("missing.md", "cross-reference target not found"), ("index.md#no-such-heading", "local id not found")],
)
def test_a_dead_link_is_an_error(link: str, said: str, tmp_path: Path) -> None:
    small = tmp_path / "source"
    (small / "docs").mkdir(parents=True)
    shutil.copy(ROOT / "docs/conf.py", small / "docs")
    shutil.copytree(ROOT / "docs/site", small / "docs/site")
    (small / "docs/index.md").write_text(f"# Documents\n\nThis is [somewhere]({link}).\n", encoding="utf-8")
    done = build(small, tmp_path)
    assert done.returncode == 1
    assert said in done.stderr
