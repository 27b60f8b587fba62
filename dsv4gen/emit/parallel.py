"""Work that only computes, spread over forked processes; results come back in order.

Forked children inherit the specs that are already parsed, which costs as much as building several targets. Where
the system cannot fork, the work runs in this process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from dsv4gen.base.errors import OutputError

T = TypeVar("T")
R = TypeVar("R")

_work: Callable[[Any], Any] | None = None


def run_forked(work: Callable[[T], R], items: Sequence[T], jobs: int) -> Iterator[R]:
    """`work` of each item, in order; `jobs` at a time. Items and results are pickled, `work` is not.

    Raises:
        OutputError: a child process died.
    """
    count = min(jobs, len(items))
    if count <= 1 or not hasattr(os, "fork"):
        yield from map(work, items)
        return
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    context = get_context("fork")
    try:
        with ProcessPoolExecutor(count, context, initializer=_inherit, initargs=(work,)) as pool:
            yield from pool.map(_call, items)
    except BrokenProcessPool as error:
        raise OutputError("a build process died, often for lack of memory", remedy="try --jobs 1") from error


def _inherit(work: Callable[[Any], Any]) -> None:
    global _work
    _work = work


def _call(item: Any) -> Any:
    assert _work is not None
    return _work(item)
