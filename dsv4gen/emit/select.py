"""Target words of the command line -> target names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dsv4gen.base import env, extensions
from dsv4gen.base.errors import UsageError
from dsv4gen.base.target_id import parse_list


def known_targets() -> tuple[str, ...]:
    """Names of all platform records, parents (leading underscore) left out."""
    files = (path for folder in extensions.spec_folders() for path in (folder / "platforms").glob("*.yaml"))
    return tuple(sorted({path.stem for path in files if not path.stem.startswith("_")}))


def select_targets(words: Iterable[str]) -> tuple[str, ...]:
    """Target names for `--target` words: `all`, a name, any spelling a driver prints, or a list of them
    separated by `;`, `,` or blanks; in order, without repeats.

    Raises:
        UsageError: no word and no DSV4GEN_TARGET; there is no default architecture.
        UnknownTarget: a word that no record describes.
    """
    known = known_targets()
    chosen = [word for word in (*words,) if word] or [word for word in (env.text(env.TARGET),) if word]
    if not chosen:
        raise UsageError(
            "no target given", remedy=f"pass --target NAME (or all), or set DSV4GEN_TARGET; targets: {', '.join(known)}"
        )
    names: dict[str, None] = {}
    for word in chosen:
        for name in known if word == "all" else _resolve(word, known):
            names[name] = None
    return tuple(names)


def select_target(word: str) -> str:
    """The name of the one target that a word means, for commands that look at one.

    Raises:
        UsageError: `all`, or a list of several.
        UnknownTarget: a word that no record describes.
    """
    names = select_targets([word])
    if len(names) > 1:
        raise UsageError(f"--target {word} means {len(names)} targets", remedy=f"name one of {', '.join(names)}")
    return names[0]


def _resolve(word: str, known: tuple[str, ...]) -> tuple[str, ...]:
    if word in known:
        return (word,)
    from dsv4gen.spec import load_specs
    from dsv4gen.target import resolve_target

    specs = load_specs(*extensions.spec_folders())
    one_or_list = re.split(r"[;,\s]", word.strip())
    words = [str(one) for one in parse_list(word, known)] if len(one_or_list) > 1 else [word]
    return tuple(resolve_target(specs, each).name for each in words)
