"""Commands that run what was generated without a GPU: verify and emulate."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from click.core import ParameterSource

from dsv4gen.base import paths
from dsv4gen.base.errors import EXIT_FINDINGS, UsageError
from dsv4gen.commands.options import (
    BLOCK,
    LDS,
    OutputFile,
    families_option,
    json_option,
    op_option,
    targets_option,
)
from dsv4gen.console import emit_json, parse_grid, parse_shape


@click.command(short_help="Lint, compile and run kernels on the oracles; no GPU needed.")
@targets_option
@families_option
@click.option("--full", is_flag=True, help="Every case on the host build, every covering one as machine code.")
@click.option("--option-builds", is_flag=True, help="Compile what options make of the sources too; takes minutes.")
@click.option("--out", type=OutputFile(parents=True), help="Also write the results to this file.")
@json_option
def verify(
    targets: tuple[str, ...],
    families: tuple[str, ...],
    full: bool,
    option_builds: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Lint, compile, read resources and run the kernels on the oracles; no GPU needed.

    The results also stay in the cache, where `dsv4gen report` finds them.
    """
    from dsv4gen.emit.select import select_targets
    from dsv4gen.verify.progress import shown
    from dsv4gen.verify.results import keep, write_results
    from dsv4gen.verify.run import verify as run_verify

    paths.require_cache()
    with shown(quiet=as_json) as progress:
        names = select_targets(targets)
        outcome = run_verify(names, families, full=full, builds=option_builds, progress=progress)
    keep(outcome)
    if out is not None:
        write_results(outcome, out)
    if as_json:
        emit_json(outcome.to_json())
    else:
        outcome.show()
    sys.exit(0 if outcome.passed else EXIT_FINDINGS)


@click.command(short_help="Execute AMD machine code on this CPU: compared and checked.")
@click.argument("family", required=False)
@click.option("--target", "-t", metavar="T", help="AMD target id.")
@op_option
@click.option(
    "--order", default="ascending", show_default=True, help="Of blocks and waves; or descending, random:SEED."
)
@click.option("--variant", default="", help="Of a HIP family; default: the platform's.")
@click.option("--path", default="", help="Launch path of a HIP family; default: what dispatch takes for the shape.")
@click.option("--hsaco", type=click.Path(path_type=Path), help="Run a kernel of this code object instead.")
@click.option("--kernel", help="With --hsaco: the kernel's symbol.")
@click.option("--grid", default="1", show_default=True, help="With --hsaco: blocks, as X or X,Y or X,Y,Z.")
@click.option("--block", type=BLOCK, default=256, show_default=True, help="With --hsaco: threads per block.")
@click.option("--lds", type=LDS, default=0, show_default=True, help="With --hsaco: bytes of dynamic LDS.")
@click.argument("words", nargs=-1)
@json_option
def emulate(
    family: str | None,
    target: str | None,
    op: str | None,
    order: str,
    variant: str,
    path: str,
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

    paths.require_cache()
    _refuse_unused(hsaco is not None)
    if hsaco is not None:
        arguments = [word for word in (family, *words) if word]
        blocks = parse_grid(grid)
        if not kernel:
            raise UsageError("--hsaco without a kernel", remedy="name one: --kernel SYMBOL")
        outcome = emulate_code_object(hsaco, kernel, blocks, block, arguments, lds, order)
    elif family and target:
        axes, options = parse_shape(words)
        outcome = emulate_shape(family, target, op, axes, options, order, variant=variant, path=path)
    else:
        raise UsageError("nothing to run", remedy="name a family and --target, or --hsaco FILE and --kernel NAME")
    if as_json:
        emit_json(outcome.to_json())
    else:
        outcome.show()
    sys.exit(EXIT_FINDINGS if outcome.problem else 0)


def _refuse_unused(code_object: bool) -> None:
    """Refuse flags of `emulate` that what was asked for does not look at.

    Raises:
        UsageError: such a flag.
    """
    context = click.get_current_context()
    given = {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    unused = given & ({"target", "op", "variant", "path"} if code_object else {"kernel", "grid", "block", "lds"})
    if unused:
        where = "--hsaco" if code_object else "a family"
        raise UsageError(
            f"--{min(unused)} says nothing about {where}",
            remedy=f"leave it out{'' if code_object else ', or give --hsaco FILE'}",
        )


COMMANDS: tuple[click.Command, ...] = (verify, emulate)
