"""The Jinja environment: strict undefined, sandboxed, no loader caches that outlive an edit."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import jinja2
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

from dsv4gen.base import paths
from dsv4gen.base.errors import DsvError, Place, TemplateError, raise_all
from dsv4gen.render import literals
from dsv4gen.render.checks import check_template
from dsv4gen.render.source_map import add_markers


class _Markers(Extension):
    """Adds line markers before Jinja reads a template."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:  # noqa: ARG002
        return add_markers(source, name) if name else source


class _Loader(jinja2.BaseLoader):
    """Reads templates below some folders as UTF-8 with LF line ends, and checks each text the first time."""

    def __init__(self, roots: Sequence[Path], known: Iterable[str]) -> None:
        self.roots = roots
        self.known = frozenset(known)
        self.plain = jinja2.Environment(extensions=["jinja2.ext.do"], trim_blocks=True, lstrip_blocks=True)

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        path = self._find(template)
        source = path.read_text(encoding="utf-8")
        self.plain.filters.update(environment.filters)
        self.plain.tests.update(environment.tests)
        raise_all(check_template(self.plain, source, template, self.known))
        return source, str(path), lambda: _holds(path, source)

    def _find(self, template: str) -> Path:
        """The one file of that name; two would make the output depend on an order."""
        parts = jinja2.loaders.split_template_path(template)
        found = [path for root in self.roots if (path := root.joinpath(*parts)).is_file()]
        if not found:
            raise jinja2.TemplateNotFound(template)
        if len(found) > 1:
            raise TemplateError(
                f"the template {template} exists twice: {' and '.join(map(paths.display, found))}",
                remedy="an extension adds and never replaces: rename it, or leave the extension out",
            )
        return found[0]


def _holds(path: Path, source: str) -> bool:
    """Whether a file still has the text that was read; by content, since saving twice in a second is common."""
    try:
        return path.read_text(encoding="utf-8") == source
    except OSError:
        return False


def make_environment(root: Path, known: Iterable[str], further: Iterable[Path] = ()) -> ImmutableSandboxedEnvironment:
    """An environment over the templates below `root` and `further` that may use the context names in `known`."""
    environment = ImmutableSandboxedEnvironment(
        loader=_Loader((root, *further), known),
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
    environment.filters["py_block"] = literals.py_block
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
    except RecursionError as error:
        raise TemplateError(
            f"{name} includes itself, perhaps through others", place=Place(f"templates/{name}")
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
