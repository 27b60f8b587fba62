"""Commands that write sources: build, and new-target and new-family, which begin what is built."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dsv4gen.base import paths
from dsv4gen.base.errors import UsageError
from dsv4gen.commands.options import (
    JOBS,
    OutputFolder,
    families_option,
    folder_option,
    json_option,
    targets_option,
)
from dsv4gen.console import emit_json, say


@click.command(short_help="Generate sources and modules; writes only what changed.")
@targets_option
@families_option
@click.option("--out", type=OutputFolder(), help="Folder for the target folders; default: generated/.")
@click.option(
    "--check", "check_only", is_flag=True, help="Write nothing; name what is stale, edited, missing or orphan."
)
@click.option("--compile", "compile_too", is_flag=True, help="Put code objects beside the HIP/CUDA sources.")
@click.option("--compiler", default="auto", show_default=True, help="For --compile: clang, zig, nvrtc or nvcc.")
@click.option("--watch", "watching", is_flag=True, help="Build again whenever a spec or a template is saved.")
@click.option("--jobs", "-j", type=JOBS, default=0, help="Processes; default: by cores and targets.")
@json_option
def build(
    targets: tuple[str, ...],
    families: tuple[str, ...],
    out: Path | None,
    check_only: bool,
    compile_too: bool,
    compiler: str,
    watching: bool,
    jobs: int,
    as_json: bool,
) -> None:
    """Generate sources and modules for targets; writes only what changed."""
    from dsv4gen.emit.build import Request
    from dsv4gen.emit.build import build as run_build
    from dsv4gen.emit.build import check as run_check
    from dsv4gen.emit.select import select_targets
    from dsv4gen.report.build import show_built, show_drift, show_watch

    if check_only + compile_too + watching > 1:
        raise UsageError("--check, --compile and --watch exclude each other")
    paths.require_cache()
    if watching:
        show_watch(lambda: Request(select_targets(targets), families, out, jobs), as_json)
        return
    request = Request(select_targets(targets), families, out, jobs)
    if compile_too:
        from dsv4gen.emit.compile import require_compiler

        require_compiler(request.targets, compiler)
    if check_only:
        sys.exit(show_drift(run_check(request), as_json))
    built = run_build(request, progress=lambda name: say(f"built {name}", "dim") if sys.stdout.isatty() else None)
    sys.exit(show_built(built, families, compiler if compile_too else "", as_json))


@click.command(name="new-target")
@click.argument("name")
@click.option("--like", metavar="T", help="Target to take facts from; default: the nearest of the same vendor.")
@folder_option
@json_option
def new_target_command(name: str, like: str | None, folder: Path | None, as_json: bool) -> None:
    """Begin a platform file for a GPU that has none."""
    from dsv4gen.scaffold.target import new_target

    new = new_target(name, like=like, folder=folder)
    if as_json:
        emit_json({"files": [str(new.file)], "like": new.like})
        return
    say(f"wrote {paths.display(new.file)}, with the facts of {new.like} until it states its own", "good")
    say(f"next: edit it, then dsv4gen build --target {name}")


@click.command(name="new-family", short_help="Begin a kernel family with a tiny kernel that works.")
@click.argument("name")
@click.option("--language", type=click.Choice(("hip_cuda", "triton")), default="hip_cuda", show_default=True)
@folder_option
@json_option
def new_family_command(name: str, language: str, folder: Path | None, as_json: bool) -> None:
    """Begin a kernel family: spec, template, reference, cases and test of a tiny kernel that works."""
    from dsv4gen.scaffold.family import new_family

    files = new_family(name, language=language, folder=folder)
    if as_json:
        emit_json({"files": [str(file) for file in files]})
        return
    for file in files:
        say(f"wrote {paths.display(file)}", "good")
    chosen = f"--target all --family {name}"
    say(f"next: edit them, then dsv4gen build {chosen} && dsv4gen verify {chosen}")


COMMANDS: tuple[click.Command, ...] = (build, new_target_command, new_family_command)
