"""The public functions: load, explain, prewarm, targets, families."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dsv4gen.base import env, paths
from dsv4gen.base.errors import CaptureError, LoadError, ManifestError, UnknownName, did_you_mean
from dsv4gen.base.manifest import Manifest, read_manifest, require_intact
from dsv4gen.base.target_id import TargetId, parse
from dsv4gen.runtime import freshness, platform, selection, torch_ops
from dsv4gen.runtime.backend import Backend, Function, Sizes
from dsv4gen.runtime.call_table import CallTable
from dsv4gen.runtime.dispatch import Decision, complete_options, decide, usual_facts, with_dies, with_facts
from dsv4gen.runtime.loaded import LoadedFamily, Use, unknown_op

_log = logging.getLogger("dsv4gen")
REFERENCE = "reference"


def load(
    family: str,
    device: object = None,
    target: str | None = None,
    *,
    checked: bool = True,
    cache_dir: Path | str | None = None,
    **options: str,
) -> LoadedFamily:
    """The best kernels of a family for a device, as a callable object. Call it once and keep the result.

    Args:
        family: its name, e.g. "topk".
        device: a torch device, its text or its index; without it, whichever GPU the tensors of a call are on.
        target: a target's name instead of the device's own, or "reference" for the torch path.
        checked: test the arguments of every call.
        cache_dir: where compiled kernels are kept instead of DSV4GEN_CACHE_DIR or the user's cache.
        options: compile-time choices of the family, e.g. mode="dual".

    The target is the argument, else DSV4GEN_TARGET, else that of the device. Kernels are compiled when a shape first
    needs them; `prewarm` does it ahead of time.

    Raises:
        LoadError: no GPU and no target; no folder serves the device, with the reason for each; several do; the family
            has no reference that is called this way.
        ArgumentError: an option or choice that does not exist.
        ManifestError: generated files were edited, or an interrupted build left them incomplete.
        CaptureError: a graph is being captured.
    """
    _set_log_level()
    word = target or env.text(env.TARGET)
    use = Use(target or "", checked)
    if word == REFERENCE:
        from dsv4gen.runtime.reference_backend import ReferenceBackend

        entry = any_entry(family)
        chosen = complete_options(entry, options)
        return LoadedFamily(family, ReferenceBackend(family, chosen, entry), entry, chosen, use)
    here = platform.current()
    if here.is_capturing():
        words = "".join(f", {name}={value!r}" for name, value in options.items())
        raise CaptureError(
            f"{family} would be loaded now, which would break the graph capture in progress",
            remedy=f"before the capture, call dsv4gen.prewarm({family!r}{words}, shapes=[...])",
        )
    index = platform.device_index(device)
    accepted = _accept_target(family, word) if word else _accept_device(family, index, here)
    require_intact(accepted.manifest, accepted.folder)
    choose = None if word else lambda number: _accept_device(family, number, here)
    return load_from(family, accepted, options, use, here, choose, Path(cache_dir) if cache_dir else None)


def load_from(
    family: str,
    accepted: selection.Accepted,
    options: Mapping[str, str],
    use: Use,
    here: platform.Platform,
    choose: Callable[[int], selection.Accepted] | None = None,
    cache_dir: Path | None = None,
) -> LoadedFamily:
    """A family from a folder that was already chosen."""
    entry = accepted.manifest.families[family]
    chosen = complete_options(entry, options)
    backend: Backend
    if entry["language"] == "triton":
        from dsv4gen.runtime.triton_backend import TritonBackend

        backend = TritonBackend(family, accepted, chosen, here)
    else:
        from dsv4gen.runtime.driver_backend import DriverBackend

        backend = DriverBackend(family, accepted, chosen, here, choose, cache_dir)
    return LoadedFamily(family, backend, entry, chosen, use)


def prewarm(
    family: str,
    device: object = None,
    target: str | None = None,
    *,
    shapes: Sequence[Sizes] = (),
    op: str | None = None,
    cache_dir: Path | str | None = None,
    **options: str,
) -> LoadedFamily:
    """Load a family and everything its calls need on a device, so that no later call compiles, loads or allocates.

    Args:
        shapes: sizes of the calls to come, e.g. [dict(batch=8, width=131072, k=512)]; without them, every kernel
            that the options reach is loaded, which takes longer. Triton families need them.
        op: only this op.

    Call it before a graph capture. What it returns is what `load` returns.
    """
    here = platform.current()
    index = platform.device_index(device)
    loaded = load(family, device, target, checked=True, cache_dir=cache_dir, **options)
    if index is None:
        loaded.prewarm(shapes, op)
    else:
        with here.on_device(index):
            loaded.prewarm(shapes, op)
    return loaded


def explain(
    family: str, op: str | None = None, *, target: str | None = None, device: object = None, **shape: Any
) -> Decision:
    """Which launches a call makes and why not others. Sizes and options are given together; needs no GPU with a target.

    Raises:
        LoadError: as for `load`.
        ArgumentError: an axis or option that does not exist, a size out of range or missing.
    """
    word = target or env.text(env.TARGET)
    index, here = platform.device_index(device), platform.current()
    accepted = _accept_target(family, word) if word else _accept_device(family, index, here)
    entry = accepted.manifest.families[family]
    name = op or entry["main"]
    if name not in entry["ops"]:
        raise unknown_op(family, name, entry["ops"])
    options = {key: value for key, value in shape.items() if isinstance(value, str)}
    sizes = {key: value for key, value in shape.items() if key not in options}
    manifest = accepted.manifest
    facts = usual_facts(manifest.target) if word else with_dies(manifest.target, platform.facts(here, index))
    sizes = with_facts(entry, name, sizes, facts)
    return decide(family, entry, accepted.target, name, sizes, options)


def targets() -> tuple[str, ...]:
    """Names of the targets that are generated here."""
    return tuple(folder.name for folder in selection.folders(paths.generated()))


def families(target: str | None = None) -> tuple[str, ...]:
    """Names of the families generated for one target, or for any."""
    found: set[str] = set()
    for folder in selection.folders(paths.generated()):
        if target in (None, folder.name):
            found |= set(read_manifest(folder).families)
    return tuple(sorted(found))


def any_entry(family: str) -> Mapping[str, Any]:
    """A family's manifest entry from whichever folder holds it: its arguments are the same on every target.

    Raises:
        UnknownName: no folder holds the family. LoadError: nothing is generated.
    """
    known: set[str] = set()
    for folder in selection.folders(paths.generated()):
        try:
            manifest: Manifest = read_manifest(folder)
        except ManifestError as error:
            _log.debug("%s", error)
            continue
        if family in manifest.families:
            return manifest.families[family]
        known |= set(manifest.families)
    message = f"no family {family!r} is generated in {paths.display(paths.generated())}"
    if not known:
        raise LoadError(message, remedy="run: dsv4gen build --target all")
    raise UnknownName(f"{message}{did_you_mean(family, known)}", remedy=f"families: {', '.join(sorted(known))}")


def _accept_target(family: str, word: str) -> selection.Accepted:
    wanted = parse(word, (*targets(), REFERENCE))
    return _accept(family, TargetId(wanted.arch, wanted.features), f"target {word}")


def _accept_device(family: str, index: int | None, here: platform.Platform) -> selection.Accepted:
    devices = here.devices()
    if not devices:
        any_entry(family)  # a misspelt family is the first thing to say
        raise LoadError(
            f"cannot choose a {family} kernel: no GPU and no target ({here.why_no_device()})",
            remedy=f'pass target="..." or set {env.TARGET.name}; target="reference" runs in torch on the CPU',
        )
    number = here.current_index() if index is None else index
    device = next((entry for entry in devices if entry.index == number), devices[0])
    if device.target is None:
        raise LoadError(f"cannot choose a {family} kernel for {device}", remedy=f"set {env.TARGET.name}")
    return _accept(family, device.target, str(device))


def _accept(family: str, wanted: TargetId, who: str) -> selection.Accepted:
    freshness.ensure(family, wanted)
    return selection.choose(family, wanted, who, paths.generated())


def _load_for_op(family: str, op: str, options: Mapping[str, str], target: str) -> tuple[CallTable, Function]:
    loaded = load(family, None, target or None, checked=True, cache_dir=None, **options).op(op)
    return loaded.table, loaded.raw


def _set_log_level() -> None:
    """DSV4GEN_LOG decides what the package's logger lets through; without a handler Python prints warnings only."""
    level = env.text(env.LOG).upper()
    _log.setLevel(level)
    if level in ("DEBUG", "INFO") and not _log.handlers:
        _log.addHandler(logging.StreamHandler())


torch_ops.set_loader(_load_for_op)


def _keep_dynamo_out(*functions: Any) -> None:
    """torch.compile must not follow a loader; met inside a compiled function it stops with this sentence."""
    for function in functions:
        function._torchdynamo_disable = True
        function._torchdynamo_disable_msg = "load or prewarm kernels before compiling, then call them"


_keep_dynamo_out(load, prewarm)
