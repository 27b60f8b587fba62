"""Every process-wide environment variable: name, type, default, meaning.

Variables that choose between variants of one family (`DSV4GEN_TOPK=v1|v2`) are declared in the family specs
and reach the runtime through the manifest; they are not listed here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from dsv4gen.base.errors import EnvironmentValueError


class Variable(NamedTuple):
    """One environment variable: its kind is `path`, `flag`, `text` or `choice`."""

    name: str
    kind: str
    default: str
    meaning: str
    choices: tuple[str, ...] = ()


TARGET = Variable("DSV4GEN_TARGET", "text", "", "target used when neither an argument nor a tensor names one")
CACHE_DIR = Variable("DSV4GEN_CACHE_DIR", "path", "", "compiled code objects; default: the user cache folder")
SPECS_DIR = Variable("DSV4GEN_SPECS_DIR", "path", "", "specs to use instead of the packaged ones")
TEMPLATES_DIR = Variable("DSV4GEN_TEMPLATES_DIR", "path", "", "templates to use instead of the packaged ones")
EXTENSIONS = Variable(
    "DSV4GEN_EXTENSIONS",
    "text",
    "",
    "folders with further specs, templates and references, or none; default: those of installed distributions",
)
GENERATED_DIR = Variable("DSV4GEN_GENERATED_DIR", "path", "", "where generated modules are written and looked up")
NO_COMPILE = Variable("DSV4GEN_NO_COMPILE", "flag", "0", "never compile at run time; use prebuilt code objects only")
REGENERATE = Variable("DSV4GEN_REGENERATE", "flag", "0", "rebuild generated files older than their specs at load")
NATIVE = Variable("DSV4GEN_NATIVE", "flag", "1", "0: calls like an earlier one do without the compiled extension")
REQUIRE_TOOLS = Variable("DSV4GEN_REQUIRE_TOOLS", "flag", "0", "tests fail instead of skipping when a tool is missing")
LOG = Variable("DSV4GEN_LOG", "choice", "warning", "log level", ("debug", "info", "warning", "error"))

VARIABLES = (
    TARGET,
    CACHE_DIR,
    SPECS_DIR,
    TEMPLATES_DIR,
    EXTENSIONS,
    GENERATED_DIR,
    NO_COMPILE,
    REGENERATE,
    NATIVE,
    REQUIRE_TOOLS,
    LOG,
)

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off", "")


def text(variable: Variable, environ: Mapping[str, str] | None = None) -> str:
    """The value as text, checked against the declared choices.

    Raises:
        EnvironmentValueError: a value outside the choices.
    """
    value = (os.environ if environ is None else environ).get(variable.name, variable.default)
    if variable.choices and value not in variable.choices:
        raise EnvironmentValueError(
            f"{variable.name}={value!r} is not one of {', '.join(variable.choices)}",
            remedy=f"set {variable.name} to one of these, or unset it",
        )
    return value


def flag(variable: Variable, environ: Mapping[str, str] | None = None) -> bool:
    """The value as a switch.

    Raises:
        EnvironmentValueError: neither a yes nor a no.
    """
    value = text(variable, environ).lower()
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise EnvironmentValueError(f"{variable.name}={value!r} is neither 1 nor 0", remedy=f"set {variable.name}=1 or 0")


def path(variable: Variable, environ: Mapping[str, str] | None = None) -> Path | None:
    """The value as a path, or None when unset."""
    value = text(variable, environ)
    return Path(value).expanduser() if value else None
