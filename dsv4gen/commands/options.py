"""Flags that several commands have, and types that refuse a wrong value before anything runs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from dsv4gen.base.outputs import require_file, require_folder, written_path

targets_option = click.option(
    "--target", "-t", "targets", multiple=True, metavar="T", help="Target id, or all; repeatable."
)
families_option = click.option(
    "--family", "-f", "families", multiple=True, metavar="F", help="Family; repeatable; default all."
)
op_option = click.option("--op", help="Operation of the family; default: its main one.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for other programs.")


class OutputFile(click.Path):
    """A file that will be written: refused at once where that cannot be."""

    def __init__(self, *, parents: bool = False) -> None:
        super().__init__(path_type=Path)
        self._parents = parents

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Raises UsageError for no path, a folder, a missing or an unwritable place."""
        path = Path(str(super().convert(written_path(value, _name(param)), param, ctx)))
        require_file(path, _name(param), parents=self._parents)
        return path


class OutputFolder(click.Path):
    """A folder that will be written to, made when missing: refused at once where that cannot be."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Raises UsageError for no path, a file or an unwritable place."""
        path = Path(str(super().convert(written_path(value, _name(param)), param, ctx)))
        require_folder(path, _name(param))
        return path


class FiniteFloat(click.FloatRange):
    """A number of a range, and nothing that is no number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Fails, as click's types do, for nan and the infinities too."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def _name(param: click.Parameter | None) -> str:
    return max(param.opts, key=len) if param else "the output"


#: a file that is there
INPUT_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
#: processes that a command may start; 0 leaves it to the command
JOBS = click.IntRange(0, 1024)
#: torch's number of a card
DEVICE = click.IntRange(0, 1023)
#: threads of a block, and bytes of LDS; what one target allows is checked where it is known
BLOCK, LDS = click.IntRange(1, 1024), click.IntRange(0, 1 << 20)
folder_option = click.option("--folder", type=OutputFolder(), help="Extension's folder; default: the checkout.")
