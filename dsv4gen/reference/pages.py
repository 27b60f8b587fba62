"""What every paged cache has to hold."""

from __future__ import annotations

from torch import Tensor

from dsv4gen.base.errors import ArgumentError


def require_room(pool: Tensor, page_size: int, record: int) -> None:
    """Make sure that pages hold `page_size` records of `record` bytes each.

    Args:
        pool: uint8 [pages, page_bytes].

    Raises:
        ArgumentError: they do not.
    """
    if page_size < 1 or pool.shape[1] < page_size * record:
        raise ArgumentError(
            f"cache: pages of {pool.shape[1]} bytes are too small for {page_size} records of {record}",
            remedy="page_size is the number of slots per page, at least 1",
        )
