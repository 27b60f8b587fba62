"""Commands that only read: explain, report, list, doctor and schema."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dsv4gen.base import paths
from dsv4gen.base.errors import UsageError
from dsv4gen.commands.options import (
    INPUT_FILE,
    OutputFolder,
    families_option,
    json_option,
    op_option,
    targets_option,
)
from dsv4gen.console import emit_json, parse_shape, table


@click.command(short_help="Say which path a shape takes, why, and what is proven.")
@click.argument("family")
@click.option("--target", "-t", required=True, metavar="T", help="Target id.")
@op_option
@click.option("--all", "all_proofs", is_flag=True, help="Show the proofs of every kernel and tile.")
@click.argument("shape", nargs=-1)
@json_option
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


@click.command(short_help="What is built, proven, compiled, executed and measured.")
@click.argument("cell", required=False)
@targets_option
@families_option
@click.option("--html", type=OutputFolder(), metavar="DIR", help="Write DIR/index.html, one file.")
@click.option(
    "--verify",
    "verify_files",
    multiple=True,
    type=INPUT_FILE,
    metavar="F",
    help="Results that verify --out wrote; default: those kept on this machine.",
)
@click.option(
    "--bench",
    "bench_files",
    multiple=True,
    type=INPUT_FILE,
    metavar="F",
    help="Times that bench --json wrote.",
)
@json_option
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

    paths.require_cache()
    chosen = select_targets(targets) if targets else ()
    sys.exit(run(chosen, families, cell or "", html, verify_files, bench_files, as_json))


@click.command(name="list")
@json_option
def list_command(as_json: bool) -> None:
    """Families and targets that can be built, and what is built."""
    from dsv4gen.report.listing import listing

    rows = listing()
    if as_json:
        emit_json([vars(row) for row in rows])
    else:
        table(("target", "also", "wave", "families", "built"), [row.cells() for row in rows])


@click.command(short_help="Compilers, libraries and devices: found, used for, missing.")
@json_option
def doctor(as_json: bool) -> None:
    """Compilers, libraries and devices that are here, what each is for, and how to get what is missing."""
    from dsv4gen.report.doctor import diagnose

    rows = diagnose()
    if as_json:
        emit_json([vars(row) for row in rows])
    else:
        table(("tool", "found", "used for", "remedy"), [row.cells() for row in rows])


@click.command()
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


COMMANDS: tuple[click.Command, ...] = (explain, report, list_command, doctor, schema)
