"""`build --watch`: build again whenever a spec or a template is saved.

Builds run in this process, where they take a fraction of the time a new one takes to import the generator; specs
and templates are read anew each time. A mistake in them is an event like any other: the next save is another try.
Known gap: a change of the generator itself needs a restart.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dsv4gen.base import extensions, paths
from dsv4gen.base.errors import DsvError
from dsv4gen.emit.build import Built, Request, build

SUFFIXES = (".yaml", ".yml", ".jinja")
#: milliseconds without a further change that end a group of changes, and the longest such group
QUIET_MS, GROUP_MS = 50, 500


@dataclass(frozen=True)
class Rebuilt:
    """One build: the files whose change caused it (none for the first), what it wrote or why it could not."""

    saved: tuple[str, ...]
    built: tuple[Built, ...]
    errors: tuple[DsvError, ...]
    seconds: float


def watch(make_request: Callable[[], Request], stop: threading.Event | None = None) -> Iterator[Rebuilt]:
    """Build now and after every change, until `stop` is set.

    `make_request` is asked for every build, so that `all` means the platform files of that moment.

    Raises:
        UsageError: the first request cannot be made.
    """
    from watchfiles import Change
    from watchfiles import watch as changes

    make_request()

    def is_input(_: Change, path: str) -> bool:
        return path.endswith(SUFFIXES)

    yield _rebuild(make_request, ())
    folders = (*extensions.spec_folders(), *extensions.template_folders())
    for found in changes(
        *folders,
        watch_filter=is_input,
        step=QUIET_MS,
        debounce=GROUP_MS,
        stop_event=stop,
    ):
        saved = sorted({paths.display(Path(path)) for _, path in found})
        yield _rebuild(make_request, tuple(saved))


def _rebuild(make_request: Callable[[], Request], saved: tuple[str, ...]) -> Rebuilt:
    started = time.perf_counter()
    built: tuple[Built, ...] = ()
    errors: tuple[DsvError, ...] = ()
    try:
        built = tuple(build(make_request()))
    except DsvError as error:
        errors = tuple(getattr(error, "errors", (error,)))
    return Rebuilt(saved, built, errors, time.perf_counter() - started)
