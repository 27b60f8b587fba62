"""The command line. Commands print what other stages return and hold no logic of their own.

Exit codes: 0 fine, 1 drift or findings, 2 usage, 3 failure.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dsv4gen import __version__
from dsv4gen.base import paths
from dsv4gen.base.errors import EXIT_FINDINGS, DsvError, UsageError
from dsv4gen.console import emit_json, parse_grid, parse_shape, report_error, say, table


class _Group(click.Group):
    """Turns our errors into messages and exit codes; a user's mistake never shows a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except DsvError as error:
            report_error(error)
            ctx.exit(getattr(error, "exit_code", error.exit_status))


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dsv4gen")
def main() -> None:
    """Generate, prove, compile and run the DeepSeek-V4 inference kernels for AMD and NVIDIA GPUs."""


_targets = click.option("--target", "-t", "targets", multiple=True, metavar="T", help="Target id, or all; repeatable.")
_families = click.option(
    "--family", "-f", "families", multiple=True, metavar="F", help="Family; repeatable; default all."
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for other programs.")


@main.command()
@_targets
@_families
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the target folders; default: generated/.")
@click.option(
    "--check", "check_only", is_flag=True, help="Write nothing; name what is stale, edited, missing or orphan."
)
@click.option("--compile", "compile_too", is_flag=True, help="Put code objects beside the HIP/CUDA sources.")
@click.option("--compiler", default="auto", show_default=True, help="For --compile: clang, zig, nvrtc or nvcc.")
@click.option("--watch", "watching", is_flag=True, help="Build again whenever a spec or a template is saved.")
@click.option("--jobs", "-j", type=click.IntRange(0), default=0, help="Processes; default: by cores and targets.")
@_json
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
    if watching:
        show_watch(lambda: Request(select_targets(targets), families, out, jobs), as_json)
        return
    request = Request(select_targets(targets), families, out, jobs)
    if check_only:
        sys.exit(show_drift(run_check(request), as_json))
    built = run_build(request, progress=lambda name: say(f"built {name}", "dim") if sys.stdout.isatty() else None)
    sys.exit(show_built(built, families, compiler if compile_too else "", as_json))


@main.command()
@click.argument("family")
@click.option("--target", "-t", required=True, metavar="T", help="Target id.")
@click.option("--op", help="Operation of the family; default: its first.")
@click.option("--all", "all_proofs", is_flag=True, help="Show the proofs of every kernel and tile.")
@click.argument("shape", nargs=-1)
@_json
def explain(family: str, target: str, op: str | None, all_proofs: bool, shape: tuple[str, ...], as_json: bool) -> None:
    """Say which path a shape takes and why, why not the others, and what is proven.

    SHAPE are words such as batch=4 width=131072 k=512 mode=page_table.
    """
    from dsv4gen.report.explain import explain_shape

    axes, options = parse_shape(shape)
    explanation = explain_shape(family, target, op, axes, options, all_proofs=all_proofs)
    if as_json:
        emit_json(explanation.to_json())
    else:
        explanation.show()


@main.command()
@_targets
@_families
@click.option("--full", is_flag=True, help="Every case of the matrix instead of the covering selection.")
@click.option("--out", type=click.Path(path_type=Path), help="Also write the results to this file.")
@_json
def verify(targets: tuple[str, ...], families: tuple[str, ...], full: bool, out: Path | None, as_json: bool) -> None:
    """Lint, compile, read resources and run the kernels on the oracles; no GPU needed.

    The results also stay in the cache, where `dsv4gen report` finds them.
    """
    from dsv4gen.emit.select import select_targets
    from dsv4gen.verify.progress import shown
    from dsv4gen.verify.results import keep, write_results
    from dsv4gen.verify.run import verify as run_verify

    with shown(quiet=as_json) as progress:
        outcome = run_verify(select_targets(targets), families, full=full, progress=progress)
    keep(outcome)
    if out is not None:
        write_results(outcome, out)
    if as_json:
        emit_json(outcome.to_json())
    else:
        outcome.show()
    sys.exit(0 if outcome.passed else EXIT_FINDINGS)


@main.command()
@click.argument("family", required=False)
@click.option("--target", "-t", metavar="T", help="AMD target id.")
@click.option("--op", help="Operation of the family; default: its first.")
@click.option(
    "--order", default="ascending", show_default=True, help="Of blocks and waves; or descending, random:SEED."
)
@click.option("--hsaco", type=click.Path(path_type=Path), help="Run a kernel of this code object instead.")
@click.option("--kernel", help="With --hsaco: the kernel's symbol.")
@click.option("--grid", default="1", show_default=True, help="With --hsaco: blocks, as X or X,Y or X,Y,Z.")
@click.option("--block", default=256, show_default=True, help="With --hsaco: threads per block.")
@click.option("--lds", default=0, show_default=True, help="With --hsaco: bytes of dynamic LDS.")
@click.argument("words", nargs=-1)
@_json
def emulate(
    family: str | None,
    target: str | None,
    op: str | None,
    order: str,
    hsaco: Path | None,
    kernel: str | None,
    grid: str,
    block: int,
    lds: int,
    words: tuple[str, ...],
    as_json: bool,
) -> None:
    """Execute AMD machine code on this CPU: compared, checked, counted; no GPU needed.

    WORDS are a shape (batch=1 width=8192 k=512), or with --hsaco the kernel's arguments (f32[4096] i32[512]=-1 u32:7).
    """
    from dsv4gen.verify.emulated import emulate_code_object, emulate_shape

    if hsaco is not None:
        arguments = [word for word in (family, *words) if word]
        blocks = parse_grid(grid)
        outcome = emulate_code_object(hsaco, kernel or "", blocks, block, arguments, lds, order)
    elif family and target:
        axes, options = parse_shape(words)
        outcome = emulate_shape(family, target, op, axes, options, order)
    else:
        raise UsageError("nothing to run", remedy="name a family and --target, or --hsaco FILE and --kernel NAME")
    if as_json:
        emit_json(outcome.to_json())
    else:
        outcome.show()
    sys.exit(EXIT_FINDINGS if outcome.problem else 0)


@main.command()
@click.argument("family", required=False)
@click.argument("words", nargs=-1)
@click.option("--list", "groups", multiple=True, metavar="L", help="Only this list of the spec's shapes; repeatable.")
@click.option("--peers", metavar="P,..", help="Of sglang, flashinfer, torch; or none. Default: those installed.")
@click.option("--way", "ways", multiple=True, type=click.Choice(("chained", "isolated", "eager")), help="Default: all.")
@click.option("--device", default=0, show_default=True, help="Number of the card.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the result there.")
@click.option("--plot", "plot_file", type=click.Path(path_type=Path), help="Draw it there; needs matplotlib.")
@click.option("--compare", "old_file", type=click.Path(path_type=Path), help="A result from before; 1 if slower.")
@click.option("--noise", default=0.03, show_default=True, help="For --compare: changes below that part are noise.")
@click.option("--markdown", is_flag=True, help="Print Markdown tables.")
def bench(
    family: str | None,
    words: tuple[str, ...],
    groups: tuple[str, ...],
    peers: str | None,
    ways: tuple[str, ...],
    device: int,
    json_file: Path | None,
    plot_file: Path | None,
    old_file: Path | None,
    noise: float,
    markdown: bool,
) -> None:
    """Time a family, or all, on the card: each shape against its floor and against installed peers.

    WORDS such as batch=8 k=512 select among the spec's shapes; where none has them, they are timed as given. Every
    result is checked before it is timed. `chained`: calls in a CUDA graph over inputs that rotate past the cache;
    `isolated`: nothing overlaps; `eager`: a plain loop.
    """
    from dsv4gen.bench.cells import Wanted
    from dsv4gen.bench.command import Asked
    from dsv4gen.bench.command import run as run_bench
    from dsv4gen.bench.compare import compare
    from dsv4gen.bench.plot import plot
    from dsv4gen.bench.result import WAYS, read_result
    from dsv4gen.bench.show import progress_bar, show, show_comparison

    old = read_result(old_file) if old_file else None
    sizes, options = parse_shape(words)
    chosen = tuple(way for way in WAYS if way in ways or way == WAYS[0]) if ways else WAYS
    names = tuple(peers.split(",")) if peers else ()
    asked = Asked((family,) if family else (), Wanted(groups, sizes, options), names, device, chosen)
    with progress_bar() as (started, progress):
        result = run_bench(asked, old, noise, started, progress)
    if json_file:
        result.write(json_file)
    show(result, markdown=markdown)
    if plot_file:
        plot(result, plot_file)
    if old is not None:
        comparison = compare(old, result, noise)
        show_comparison(comparison)
        sys.exit(0 if comparison.passed else EXIT_FINDINGS)
    sys.exit(EXIT_FINDINGS if any(row.problem for row in result.rows) else 0)


@main.command()
@click.argument("cell", required=False)
@_targets
@_families
@click.option("--html", type=click.Path(path_type=Path), metavar="DIR", help="Write DIR/index.html, one file.")
@click.option(
    "--verify",
    "verify_files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="F",
    help="Results that verify --out wrote; default: those kept on this machine.",
)
@click.option(
    "--bench",
    "bench_files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="F",
    help="Times that bench --json wrote.",
)
@_json
def report(
    cell: str | None,
    targets: tuple[str, ...],
    families: tuple[str, ...],
    html: Path | None,
    verify_files: tuple[Path, ...],
    bench_files: tuple[Path, ...],
    as_json: bool,
) -> None:
    """What is built, proven, compiled, executed and measured, for all families and targets.

    CELL, such as gfx950/topk, prints one of them with all its reasons.
    """
    from dsv4gen.emit.select import select_targets
    from dsv4gen.report.command import run

    chosen = select_targets(targets) if targets else ()
    sys.exit(run(chosen, families, cell or "", html, verify_files, bench_files, as_json))


@main.command()
@click.argument("family", required=False)
@click.argument("words", nargs=-1)
@click.option("--target", "-t", metavar="T", help="Target id; default: the card's.")
@click.option("--list", "groups", multiple=True, metavar="L", help="Only this list of the spec's shapes; repeatable.")
@click.option("--kernel", "kernels", multiple=True, metavar="K", help="Only this kernel; repeatable.")
@click.option("--tile", "tiles", multiple=True, metavar="DIM=N", help="Hold a tile dimension at a value; repeatable.")
@click.option("--device", "devices", multiple=True, type=int, help="Number of a card; several share the shapes.")
@click.option("--seconds", type=float, help="Stop then; the same command goes on from there.")
@click.option("--jobs", "-j", type=click.IntRange(0), default=0, help="Processes that compile ahead.")
@click.option("--journal", type=click.Path(path_type=Path), help="Measurements, kept for going on.")
@click.option("--pack", "pack_file", type=click.Path(path_type=Path), help="Only write the candidates there.")
@click.option("--measure", "measure_file", type=click.Path(path_type=Path), help="Only measure this pack.")
@click.option("--apply", "apply_file", type=click.Path(path_type=Path), help="Only write the YAML of this journal.")
@_json
def tune(
    family: str | None,
    words: tuple[str, ...],
    target: str | None,
    groups: tuple[str, ...],
    kernels: tuple[str, ...],
    tiles: tuple[str, ...],
    devices: tuple[int, ...],
    seconds: float | None,
    jobs: int,
    journal: Path | None,
    pack_file: Path | None,
    measure_file: Path | None,
    apply_file: Path | None,
    as_json: bool,
) -> None:
    """Find the fastest proven tiles on the card and write specs/tuning/<target>/<family>.yaml for review.

    Each candidate is compared with the untuned kernel before it is timed. An interrupted run goes on from its journal.
    Where the card's machine lacks the generator: --pack here, --measure there, --apply here.
    """
    from dsv4gen.bench.cells import Wanted
    from dsv4gen.tune.command import Asked, Sweeping, run
    from dsv4gen.tune.show import exit_status, show, to_json

    sizes, options = parse_shape(words)
    held, other = parse_shape(tiles)
    if other:
        raise UsageError(f"--tile {next(iter(other))}={other[next(iter(other))]} is no number")
    how = Sweeping(Wanted(groups, sizes, options), devices or (0,), seconds or float("inf"), jobs)
    asked = Asked(family, target, kernels, held, journal, pack_file, measure_file, apply_file)
    done = run(asked, how, lambda text: None if as_json else say(text, "dim"))
    if as_json:
        emit_json(to_json(done))
    else:
        show(done)
    sys.exit(exit_status(done))


@main.command(name="list")
@_json
def list_command(as_json: bool) -> None:
    """Families and targets that can be built, and what is built."""
    from dsv4gen.report.listing import listing

    rows = listing()
    if as_json:
        emit_json([vars(row) for row in rows])
    else:
        table(("target", "also", "wave", "families", "built"), [row.cells() for row in rows])


@main.command()
@_json
def doctor(as_json: bool) -> None:
    """Compilers, libraries and devices that are here, what each is for, and how to get what is missing."""
    from dsv4gen.report.doctor import diagnose

    rows = diagnose()
    if as_json:
        emit_json([vars(row) for row in rows])
    else:
        table(("tool", "found", "used for", "remedy"), [row.cells() for row in rows])


_folder = click.option("--folder", type=click.Path(path_type=Path), help="Extension's folder; default: the checkout.")


@main.command(name="new-target")
@click.argument("name")
@click.option("--like", metavar="T", help="Target to take facts from; default: the nearest of the same vendor.")
@_folder
@_json
def new_target_command(name: str, like: str | None, folder: Path | None, as_json: bool) -> None:
    """Begin a platform file for a GPU that has none."""
    from dsv4gen.scaffold.target import new_target

    new = new_target(name, like=like, folder=folder)
    if as_json:
        emit_json({"files": [str(new.file)], "like": new.like})
        return
    say(f"wrote {paths.display(new.file)}, with the facts of {new.like} until it states its own", "good")
    say(f"next: edit it, then dsv4gen build --target {name}")


@main.command(name="new-family")
@click.argument("name")
@click.option("--language", type=click.Choice(("hip_cuda", "triton")), default="hip_cuda", show_default=True)
@_folder
@_json
def new_family_command(name: str, language: str, folder: Path | None, as_json: bool) -> None:
    """Begin a kernel family: spec, template, reference, cases and test of a tiny kernel that works."""
    from dsv4gen.scaffold.family import new_family

    files = new_family(name, language=language, folder=folder)
    if as_json:
        emit_json({"files": [str(file) for file in files]})
        return
    for file in files:
        say(f"wrote {paths.display(file)}", "good")
    say(f"next: edit them, then dsv4gen build --target all && dsv4gen verify --target all --family {name}")


@main.command()
@click.argument("kind", type=click.Choice(("family", "platform", "tuning")), required=False)
@click.option("--markdown", is_flag=True, help="Print the page of all keys, docs/specs.md, instead.")
def schema(kind: str | None, markdown: bool) -> None:
    """Print the JSON Schema of one KIND of spec file, for editors."""
    if markdown:
        from dsv4gen.report.spec_page import spec_page

        click.echo(spec_page(), nl=False)
        return
    if kind is None:
        raise UsageError("no kind of spec file given", remedy="family, platform or tuning; or --markdown")
    from dsv4gen.spec import json_schema

    emit_json(json_schema(kind))
