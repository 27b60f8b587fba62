"""Commands that time what was generated: bench and tune."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dsv4gen.base import paths
from dsv4gen.base.errors import EXIT_FAILURE, EXIT_FINDINGS, UsageError
from dsv4gen.commands.options import (
    DEVICE,
    JOBS,
    FiniteFloat,
    OutputFile,
    json_option,
)
from dsv4gen.console import emit_json, family_and_words, parse_shape, say


@click.command(short_help="Time a family on the card against its floors and its peers.")
@click.argument("family", required=False)
@click.argument("words", nargs=-1)
@click.option("--list", "groups", multiple=True, metavar="L", help="Only this list of the spec's shapes; repeatable.")
@click.option("--peers", metavar="P,..", help="Of sglang, flashinfer, torch; or none. Default: those installed.")
@click.option("--way", "ways", multiple=True, type=click.Choice(("chained", "isolated", "eager")), help="Default: all.")
@click.option("--device", type=DEVICE, default=0, show_default=True, help="Number of the card.")
@click.option("--json", "json_file", type=OutputFile(), help="Write the result there.")
@click.option("--plot", "plot_file", type=OutputFile(), help="Draw it there; needs matplotlib.")
@click.option("--compare", "old_file", type=click.Path(path_type=Path), help="A result from before; 1 if slower.")
@click.option(
    "--noise",
    type=FiniteFloat(0, 1),
    default=0.03,
    show_default=True,
    help="For --compare: changes below that part of the time are noise.",
)
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
    from dsv4gen.bench.plot import plot, require_plot
    from dsv4gen.bench.result import WAYS, read_result
    from dsv4gen.bench.show import progress_bar, show, show_comparison

    paths.require_cache()
    if plot_file:
        require_plot(plot_file)
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
    wrong = any(row.problem for row in result.rows)
    if old is not None:
        comparison = compare(old, result, noise)
        show_comparison(comparison)
        wrong = not comparison.passed
    sys.exit(EXIT_FAILURE if result.untimed else EXIT_FINDINGS if wrong else 0)


@click.command(short_help="Find the fastest proven tiles on the card; writes specs/tuning.")
@click.argument("family", required=False)
@click.argument("words", nargs=-1)
@click.option("--target", "-t", metavar="T", help="Target id; default: the card's.")
@click.option("--list", "groups", multiple=True, metavar="L", help="Only this list of the spec's shapes; repeatable.")
@click.option("--kernel", "kernels", multiple=True, metavar="K", help="Only this kernel; repeatable.")
@click.option(
    "--tile",
    "tiles",
    multiple=True,
    metavar="DIM=N",
    help="Hold a dimension at a value, or as in the `spec`; repeatable.",
)
@click.option(
    "--near", type=click.IntRange(1), metavar="N", help="Only tiles that differ from one of the spec's in N dimensions."
)
@click.option("--device", "devices", multiple=True, type=DEVICE, help="Number of a card; several share the shapes.")
@click.option("--seconds", type=FiniteFloat(0, min_open=True), help="Stop then; the same command goes on from there.")
@click.option("--jobs", "-j", type=JOBS, default=0, help="Processes that compile ahead.")
@click.option("--journal", type=OutputFile(), help="Measurements, kept for going on.")
@click.option("--pack", "pack_file", type=OutputFile(), help="Only write the candidates there.")
@click.option("--measure", "measure_file", type=click.Path(path_type=Path), help="Only measure this pack.")
@click.option("--apply", "apply_file", type=click.Path(path_type=Path), help="Only write the YAML of this journal.")
@json_option
def tune(
    family: str | None,
    words: tuple[str, ...],
    target: str | None,
    groups: tuple[str, ...],
    kernels: tuple[str, ...],
    tiles: tuple[str, ...],
    near: int | None,
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
    from dsv4gen.tune.asked import Asked, Sweeping
    from dsv4gen.tune.command import run
    from dsv4gen.tune.show import exit_status, show, to_json

    paths.require_cache()
    family, words = family_and_words(family, words)
    sizes, options = parse_shape(words)
    numbers, words_held = parse_shape(tiles)
    for name, word in words_held.items():
        if word != "spec":
            raise UsageError(
                f"--tile {name}={word} is no number", remedy=f"a number, or {name}=spec for the spec's own"
            )
    held: dict[str, int | str] = {**numbers, **words_held}
    how = Sweeping(Wanted(groups, sizes, options), devices or (0,), seconds or float("inf"), jobs)
    asked = Asked(family, target, kernels, held, journal, pack_file, measure_file, apply_file, near or 0)
    done = run(asked, how, lambda text: None if as_json else say(text, "dim"))
    if as_json:
        emit_json(to_json(done))
    else:
        show(done)
    sys.exit(exit_status(done))


COMMANDS: tuple[click.Command, ...] = (bench, tune)
