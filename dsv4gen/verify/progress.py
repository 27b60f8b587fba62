"""What a long `verify` says while it works, on standard error: live lines on a terminal, else plain lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

Step = Callable[[], None]


class Progress:
    """Says nothing; the others say more."""

    @contextmanager
    def stage(self, text: str, total: int | None = None) -> Iterator[Step]:  # noqa: ARG002
        """One stage, for as long as the context lasts; call what it gives for each piece that is done.

        Stages may run at the same time, in threads.

        Args:
            total: how many pieces there are, where that is known.
        """
        yield lambda: None


class Lines(Progress):
    """A plain line as each stage begins, and another now and then while it lasts.

    Args:
        seconds: between the lines of a stage.
    """

    def __init__(
        self, write: Callable[[str], None] = lambda text: click.echo(text, err=True), *, seconds: float = 20.0
    ) -> None:
        self._write = write
        self._seconds = seconds

    @contextmanager
    def stage(self, text: str, total: int | None = None) -> Iterator[Step]:
        """See `Progress.stage`."""
        self._write(f"{text} ({total})" if total is not None else text)
        count, said = 0, time.monotonic()

        def step() -> None:
            nonlocal count, said
            count += 1
            if time.monotonic() - said >= self._seconds and count != total:
                said = time.monotonic()
                self._write(f"{text}: {_done(count, total)}")

        yield step


def _done(count: int, total: int | None) -> str:
    return f"{count} of {total}" if total else f"{count} done"


class Live(Progress):
    """On a terminal: the stages that run now, each with how much of it is done and for how long it has run."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as Bars
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.fields[done]}"))
        self._bars = Bars(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)

    def __enter__(self) -> Live:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    @contextmanager
    def stage(self, text: str, total: int | None = None) -> Iterator[Step]:
        """See `Progress.stage`."""
        task = self._bars.add_task(text, total=total, done="")
        count = 0

        def step() -> None:
            nonlocal count
            count += 1
            self._bars.update(task, done=_done(count, total), completed=count)

        try:
            yield step
        finally:
            self._bars.remove_task(task)


QUIET = Progress()


@contextmanager
def shown(*, quiet: bool = False) -> Iterator[Progress]:
    """What suits standard error: nothing where `quiet`, live lines on a terminal, else plain lines."""
    if quiet:
        yield QUIET
    elif sys.stderr.isatty():
        with Live() as live:
            yield live
    else:
        yield Lines()
