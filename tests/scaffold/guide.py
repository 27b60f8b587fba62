"""Run a guide: its fenced blocks are files to write and commands to run, with what they print.

    ```yaml file=PATH      write the file
    ```yaml append=PATH    add to its end
    ```console             lines after `$ ` are commands, run without a shell; the lines below are their output
    ```console exit=2      the last command ends with that status

In expected output, `...` stands for any text within a line, and alone on a line for any lines. Every other fenced
block is an error, so that nothing in a guide is left untried by accident.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from tests.checkout import Checkout

_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Command:
    """Words with variables in front of them, expected output, expected exit status."""

    line: str
    expected: tuple[str, ...]
    status: int

    def split(self) -> tuple[dict[str, str], list[str]]:
        """The variables and the words."""
        words = shlex.split(self.line)
        count = next(i for i, word in enumerate(words) if "=" not in word)
        return dict(word.split("=", 1) for word in words[:count]), words[count:]


def run_guide(text: str, checkout: Checkout) -> int:
    """Do everything a guide says; the number of commands run."""
    commands = 0
    for language, attributes, body in _BLOCK.findall(text):
        verb, _, value = attributes.strip().partition("=")
        if language == "console":
            for command in _commands(body, int(value) if verb == "exit" else 0):
                _run(command, checkout)
                commands += 1
        elif verb in ("file", "append"):
            path = checkout.root / value
            old = path.read_text(encoding="utf-8") if verb == "append" else ""
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(old + body, encoding="utf-8")
        else:
            raise AssertionError(f"a block that says neither file, append nor console: {language}{attributes}")
    return commands


def _commands(body: str, last_status: int) -> Iterator[Command]:
    pieces = re.split(r"^\$ ", body, flags=re.MULTILINE)
    assert not pieces[0].strip(), f"output before a command: {pieces[0]}"
    for number, piece in enumerate(pieces[1:], start=2):
        line, *expected = piece.rstrip("\n").split("\n")
        yield Command(line, tuple(expected), last_status if number == len(pieces) else 0)


def _run(command: Command, checkout: Checkout) -> None:
    variables, words = command.split()
    done = checkout.run(*words, **variables)
    output = done.stderr + done.stdout
    assert done.returncode == command.status, f"$ {command.line}\n{output}"
    assert matches(command.expected, output), f"$ {command.line}\n{output}\ndoes not match\n" + "\n".join(
        command.expected
    )


def matches(expected: tuple[str, ...], output: str) -> bool:
    """Whether output has the expected lines; nothing expected means that anything is fine."""
    parts = [r"(?:.*\n)*" if line.strip() == "..." else _line_pattern(line) for line in expected]
    return not expected or re.fullmatch("".join(parts), output.rstrip("\n") + "\n") is not None


def _line_pattern(line: str) -> str:
    """One line; blanks match any number of blanks."""
    pieces = [r"\s+".join(map(re.escape, piece.split())) for piece in line.split("...")]
    return r"[ \t]*" + r"[^\n]*".join(pieces) + r"[ \t]*\n"
