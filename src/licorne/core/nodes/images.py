"""Images of containers that nodes have already, and how much better a node is that has those of a pod (ImageLocality).

A node says in the attribute `licorne/images` which images it has, and how large they are. Nodes may say different sizes of the
same image: that of the first node by id counts, so that it does not matter who came first.

Source: docs/spec/kube-scheduler.md, section 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .reading import fail, read_json

if TYPE_CHECKING:
    from .node import Node

IMAGES_ATTRIBUTE: Final = "licorne/images"
"""The attribute of a node with the images that it has: a JSON object of name to size in bytes."""
MIB: Final = 1 << 20
IMAGE_LEAST: Final = 23 * MIB
IMAGE_MOST: Final = 1000 * MIB
"""So much, of all images together, gives no points, and so much for each container gives all."""


class Image:
    """An image: its size as each node says it, by the ids of the nodes, and the first of these ids."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.first = ""

    def enter(self, id: str, size: int) -> None:
        """Note that a node has the image."""
        self.sizes[id] = size
        self.first = min(self.first or id, id)

    def leave(self, id: str) -> None:
        """Note that a node has it no more."""
        del self.sizes[id]
        if self.first == id:
            self.first = min(self.sizes, default="")


class Images:
    """The images of all nodes, by name, and the points that they give. `nodes`: how many nodes there are."""

    def __init__(self) -> None:
        self.nodes = 0
        self.known: dict[str, Image] = {}
        self._texts: dict[str, str] = {}  # by the ids of nodes

    def enter(self, node: Node) -> None:
        """Take in a new node with its images."""
        self.nodes += 1
        self.renew(node)

    def renew(self, node: Node) -> None:
        """Take in the images that a node has now."""
        text = node.attributes.get(IMAGES_ATTRIBUTE, "")
        if text != self._texts.get(node.id, ""):
            self._forget(node.id)
            for name, size in read_images(text).items():
                self.known.setdefault(name, Image()).enter(node.id, size)
            self._texts[node.id] = text

    def leave(self, node: Node) -> None:
        """Forget a node."""
        self.nodes -= 1
        self._forget(node.id)

    def _forget(self, id: str) -> None:
        for name in read_images(self._texts.pop(id, "")):
            self.known[name].leave(id)
            if not self.known[name].sizes:
                del self.known[name]

    def matter(self, names: tuple[str, ...]) -> bool:
        """Return whether one node may have more points than another for the images of a pod."""
        there = [self.known[name] for name in names if name in self.known]
        most = _points(sum(map(self._share, there)), len(names))
        return most > 0 and any(len(image.sizes) < self.nodes for image in there)

    def points(self, names: tuple[str, ...], nodes: list[Node]) -> list[int]:
        """Return the score of each node for a pod whose containers have these images."""
        there = [self.known[name] for name in names if name in self.known]
        shares = [(image.sizes, self._share(image)) for image in there]
        return [_points(sum([share for has, share in shares if node.id in has]), len(names)) for node in nodes]

    def _share(self, image: Image) -> int:
        """Return the size of an image, times the share of nodes that have it."""
        return int(float(image.sizes[image.first]) * (len(image.sizes) / self.nodes))


def _points(size: int, containers: int) -> int:
    most = IMAGE_MOST * containers
    return 100 * (min(max(size, IMAGE_LEAST), most) - IMAGE_LEAST) // (most - IMAGE_LEAST)


def read_images(text: str) -> dict[str, int]:
    """Parse the attribute `licorne/images`; an empty text means none.

    Raises:
        ConstraintError: the text cannot be parsed.
    """
    path = f"attributes.{IMAGES_ATTRIBUTE}"
    value = read_json(text, path) if text else {}
    if not isinstance(value, dict):
        fail(path, value, "must be an object of name to size")
    for size in value.values():
        if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size < 1 << 63:
            fail(path, size, "must be an integer of 64 bits, not below 0")
    return value
