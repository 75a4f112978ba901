"""What compiled code takes for granted of numbers that are indices, checked for a checkpoint that was read.

References are of the right class by the way they are read (`licorne.core.checkpoint.kinds`). Numbers with which C arrays
and lists are indexed, whose bounds compiled code does not check, are compared here with what they index.
"""

from __future__ import annotations

from typing import Any

from licorne.core.nodes.node import WORDS_MAX

from .columns import CheckpointError

WIDTH_MAX = 1 << 16


def check_indices(tables: dict[str, list[Any]]) -> None:
    """Check the members of all tables; raises CheckpointError with what does not agree."""

    def members(name: str) -> list[Any]:
        return tables.get(name, [None])[1:]

    for partition in members("Partition"):
        known = len(partition.types.names)
        _expect(0 <= partition.index.width <= known, "the width of the node index")
        _expect(all(0 <= at < known for at in partition.types.index.values()), "the number of a resource type")
        _expect(all(0 <= at < known for at in partition.types.free), "the number of a resource type")
        _expect(-1 <= partition.types.other < known <= WIDTH_MAX, "the number of a resource type")
        by_id = partition.index.by_id
        _expect(len({*by_id}) == len(by_id), "nodes in the index")
    for index in members("NodeIndex"):
        _expect(1 <= index.words <= WORDS_MAX, "the words of constraint bitmaps")
    words = max((index.words for index in members("NodeIndex")), default=1)
    for need in members("Need"):
        _expect(need.word < words, "the word of a need")
    for order in members("Order"):
        for at, item in enumerate(order.items):
            _expect(item.heap_index == at, "the place of an item in an order")
            _expect(item.queue.order is order if hasattr(item, "queue") else item.parent.order is order, "an order")
    for queue in members("Queue"):
        _expect(0 <= queue.next_turn <= max(len(queue.tied), 0) or not queue.tied, "whose turn it is")
        _expect(queue.next_turn >= 0, "whose turn it is")
        _expect(queue.heap_index < 0 or queue.parent is not None, "the place of a queue in an order")
    for group in members("TaskGroup"):
        _expect(0 <= group.start <= len(group.held), "the first placeholder")
    for requests in members("Requests"):
        for at, block in enumerate(requests.blocks):
            _expect(block.position == at, "the place of a block of asks")
    for block in members("AskBlock"):
        _expect(0 <= block.gone <= len(block.items), "the first ask of a block")
        _expect(None not in block.items[block.gone :], "an ask of a block")


def _expect(true: bool, what: str) -> None:
    if not true:
        raise CheckpointError(f"damaged: {what}")
