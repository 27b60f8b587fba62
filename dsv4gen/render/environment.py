"""The Jinja environment: strict undefined, sandboxed, no loader caches that outlive an edit."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import jinja2
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

from dsv4gen.base.errors import DsvError, Place, TemplateError, raise_all
from dsv4gen.render import literals
from dsv4gen.render.checks import check_template
from dsv4gen.render.source_map import add_markers


class _Markers(Extension):
    """Adds line markers before Jinja reads a template."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:  # noqa: ARG002
        return add_markers(source, name) if name else source


class _Loader(jinja2.BaseLoader):
    """Reads templates below one folder as UTF-8 with LF line ends, and checks each the first time."""

    def __init__(self, root: Path, known: Iterable[str]) -> None:
        self.root = root
        self.known = frozenset(known)
        self.plain = jinja2.Environment(extensions=["jinja2.ext.do"], trim_blocks=True, lstrip_blocks=True)

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        path = self.root.joinpath(*jinja2.loaders.split_template_path(template))
        try:
            source = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise jinja2.TemplateNotFound(template) from None
        self.plain.filters.update(environment.filters)
        self.plain.tests.update(environment.tests)
        raise_all(check_template(self.plain, source, template, self.known))
        return source, str(path), lambda: True


def make_environment(root: Path, known: Iterable[str]) -> ImmutableSandboxedEnvironment:
    """An environment over the templates below `root` that may use the context names in `known`."""
    environment = ImmutableSandboxedEnvironment(
        loader=_Loader(root, known),
        undefined=jinja2.StrictUndefined,
        extensions=["jinja2.ext.do", _Markers],
        finalize=literals.finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["cpp"] = literals.cpp
    environment.filters["py"] = literals.py
    return environment


def render_template(environment: jinja2.Environment, name: str, context: Mapping[str, object]) -> str:
    """Render with errors placed at the template line.

    Raises:
        TemplateError: unknown template, syntax error, undefined name, or a value without a literal form.
    """
    try:
        return environment.get_template(name).render(context)
    except DsvError as error:
        if error.place is None and not hasattr(error, "errors"):
            raise type(error)(error.message, place=_line_of(error), remedy=error.remedy) from error
        raise
    except jinja2.TemplateNotFound as error:
        raise TemplateError(f"no template {error.name!r}", remedy="check the spec's template: key") from error
    except jinja2.TemplateSyntaxError as error:
        raise TemplateError(
            error.message or "syntax error", place=Place(f"templates/{error.name}", error.lineno)
        ) from error
    except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError) as error:
        raise TemplateError(str(error), place=_line_of(error)) from error


def _line_of(error: BaseException) -> Place | None:
    """The innermost template line in an error's traceback."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith(".jinja")]
    if not frames:
        return None
    parts = Path(frames[-1].filename).parts
    inside = parts[parts.index("templates") :] if "templates" in parts else parts[-2:]
    return Place("/".join(inside), frames[-1].lineno)
