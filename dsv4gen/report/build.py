"""What `dsv4gen build` prints: written files, drift, code objects, and one line per change while watching."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from dsv4gen.base.errors import EXIT_FAILURE, EXIT_FINDINGS
from dsv4gen.console import emit_json, report_error, say, table
from dsv4gen.emit.build import Built, Request
from dsv4gen.emit.drift import Drift
from dsv4gen.emit.watch import Rebuilt, watch


def show_built(built: Sequence[Built], families: Sequence[str], compiler: str, as_json: bool) -> int:
    """Print a build and, when a compiler is named, compile what was built; the exit status."""
    rows: list[dict[str, Any]] = [
        {"target": item.target, "folder": str(item.folder), "changed": item.changed} for item in built
    ]
    if not compiler:
        if as_json:
            emit_json(rows)
        else:
            _show_rows(built)
        return 0
    from dsv4gen.emit.compile import compile_folders

    if not as_json:
        _show_rows(built)
    compiled = compile_folders([item.folder for item in built], families, compiler=compiler)
    if as_json:
        emit_json({"built": rows, "compiled": [asdict(file) for file in compiled.files]})
    else:
        head = ("target", "device", "code object", "kernels", "compiler", "")
        table(head, [(*tuple(asdict(file).values())[:5], _state(file.changed)) for file in compiled.files])
    for error in compiled.errors:
        report_error(error)
    return EXIT_FAILURE if compiled.errors else 0


def _state(changed: bool) -> str:
    return "compiled" if changed else "up to date"


def _show_rows(built: Sequence[Built]) -> None:
    for item in built:
        there = [name for name in item.changed if (item.folder / name).is_file()]
        for did, names in (("wrote", there), ("removed", [name for name in item.changed if name not in there])):
            if names:
                say(f"{item.target}: {did} {len(names)} files in {item.folder}: {', '.join(names)}", "good")
    if not any(item.changed for item in built):
        say(f"nothing to do: {', '.join(item.target for item in built)} up to date")


def show_drift(drift: Sequence[Drift], as_json: bool) -> int:
    """Print what differs; the exit status."""
    if as_json:
        emit_json([asdict(item) for item in drift])
    elif drift:
        table(("file", "is", "repair"), [(item.file, item.kind, item.repair) for item in drift])
    else:
        say("no drift", "good")
    return EXIT_FINDINGS if drift else 0


def show_watch(make_request: Callable[[], Request], as_json: bool) -> None:
    """Print one line per change until the user interrupts, which is how a watch ends."""
    try:
        for event in watch(make_request):
            _show_event(event, as_json)
    except KeyboardInterrupt:
        return


def _show_event(event: Rebuilt, as_json: bool) -> None:
    if as_json:
        say(json.dumps({**asdict(event), "errors": [str(error) for error in event.errors]}, default=str))
        return
    for error in event.errors:
        report_error(error)
    say(_event_line(event), "bad" if event.errors else "good")


def _event_line(event: Rebuilt) -> str:
    cause = f"{', '.join(event.saved)}: " if event.saved else ""
    if event.errors:
        return f"{cause}{len(event.errors)} mistakes, nothing written; watching"
    written = [f"{item.target} {', '.join(item.changed)}" for item in event.built if item.changed]
    result = f"wrote {'; '.join(written)}" if written else "nothing to write"
    return f"{cause}{result} ({event.seconds:.2f} s)"
