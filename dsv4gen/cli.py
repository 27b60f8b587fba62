"""The command line: its commands put together, and errors as messages and exit codes.

Exit codes: 0 fine, 1 drift or findings, 2 usage, 3 failure.
"""

from __future__ import annotations

from typing import Any

import click

from dsv4gen import __version__
from dsv4gen.base.errors import DsvError
from dsv4gen.commands import check, generate, look, measure
from dsv4gen.console import report_error


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


for _command in (*generate.COMMANDS, *check.COMMANDS, *measure.COMMANDS, *look.COMMANDS):
    main.add_command(_command)
