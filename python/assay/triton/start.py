"""ASSAY_TRITON=sm_90: the machine starts when the program imports torch or Triton, before any library does. ASSAY_CAPTURE: launches on
a GPU are kept from the program's start to its end (`assay run --capture`)."""

from __future__ import annotations

import atexit
import importlib.abc
import importlib.util
import json
import os
import sys

_AWAITED = ("torch", "triton")


class _Loader(importlib.abc.Loader):
    """A module's own loader; then what is to follow."""

    def __init__(self, loader, then):
        self._loader, self._then = loader, then

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._then()


class _Finder(importlib.abc.MetaPathFinder):
    """Waits for the first import of torch or Triton."""

    def __init__(self, then):
        self._then = then

    def find_spec(self, name, path, target=None):
        if name not in _AWAITED:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._then)
        return spec


def when_imported(arch, **options):
    """The machine starts with the program's first import of torch or Triton, and tells what it found at exit."""
    from assay.triton import gpus

    gpus.find(arch)

    def start():
        from assay.triton import session

        machine = session.Machine(arch, **options).start()
        atexit.register(_tell, machine)

    sys.meta_path.insert(0, _Finder(start))


class _EachFinder(importlib.abc.MetaPathFinder):
    """Waits for torch and for Triton; `then` is called when both are there."""

    def __init__(self, then):
        self._then = then
        self._awaited, self._missing = set(_AWAITED), set(_AWAITED)

    def find_spec(self, name, path, target=None):
        if name not in self._awaited:
            return None
        self._awaited.remove(name)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, lambda: self._loaded(name))
        return spec

    def _loaded(self, name):
        self._missing.remove(name)
        if not self._missing:
            sys.meta_path.remove(self)
            self._then()


def capture_until_exit(options):
    """`options`: JSON {"path", "when", "kernel", "result": file for what was kept}. This process's children keep nothing."""
    from assay.capturing import capture

    asked = json.loads(options)
    when = asked.get("when", "nonfinite")
    captured = capture(asked["path"], int(when) if when.isdigit() else when, kernel=asked.get("kernel", ""))
    captured.__enter__()
    sys.meta_path.insert(0, _EachFinder(captured.tap_triton))

    def end():
        captured.__exit__()
        told = {"seen": captured.seen, "kept": [launch.file for launch in captured.kept], "left_out": captured.left_out}
        with open(asked["result"], "w", encoding="utf-8") as out:
            json.dump(told, out)

    atexit.register(end)


def from_environment():
    """What the line in assay.pth calls. A wrong value ends the program with one line."""
    options = os.environ.pop("ASSAY_CAPTURE", None)
    if options is not None:
        from assay.errors import BadInput

        try:
            capture_until_exit(options)
        except BadInput as error:
            sys.stderr.write(f"{error}\n")
            os._exit(2)
    if "ASSAY_TRITON" not in os.environ:
        return
    try:
        when_imported(os.environ["ASSAY_TRITON"], checks=os.environ.get("ASSAY_TRITON_CHECKS", "none"))
    except ValueError as error:
        sys.stderr.write(f"ASSAY_TRITON: {error}\n")
        os._exit(2)


def _tell(machine):
    if machine.findings:
        sys.stderr.write(machine.text() + "\n")
