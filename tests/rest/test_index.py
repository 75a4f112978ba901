"""The page at `/` leads to everything there is to look at."""

from __future__ import annotations

from html.parser import HTMLParser

from rest.world import World, busy


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]


def test_every_link_of_the_index_leads_somewhere() -> None:
    world = busy()
    world.monitor.tick()
    answer = world.request("GET", "/")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    for rule in ("base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'"):
        assert rule in answer.headers["content-security-policy"]
    assert "2 nodes, 1 allocation; applications: 1 Accepted, 1 Running" in answer.text
    links = Links()
    links.feed(answer.text)
    assert "/ws/v1/partition/default/queues" in links.found
    for link in links.found:
        # One does not end, the other exists after the first check.
        if "stream" not in link and "healthcheck" not in link:
            assert world.request("GET", link).status_code == 200, link


def test_names_are_escaped_and_an_empty_scheduler_has_an_index() -> None:
    assert "no partition" in World().request("GET", "/").text
    text = "partitions: [{name: '<b>', queues: []}]"
    shown = World().register(text=text).request("GET", "/").text
    assert "<b>" not in shown
    assert "&lt;b&gt;" in shown
