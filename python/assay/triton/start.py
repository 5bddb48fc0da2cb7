"""ASSAY_TRITON=sm_90: the machine starts when the program imports torch or Triton, before any library does."""

from __future__ import annotations

import atexit
import importlib.abc
import importlib.util
import os
import sys

_AWAITED = ("torch", "triton")


class _Loader(importlib.abc.Loader):
    """A module's own loader; then the machine starts."""

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


def from_environment():
    """What the line in assay.pth calls. A wrong value ends the program with one line."""
    try:
        when_imported(os.environ["ASSAY_TRITON"], checks=os.environ.get("ASSAY_TRITON_CHECKS", "none"))
    except ValueError as error:
        sys.stderr.write(f"ASSAY_TRITON: {error}\n")
        os._exit(2)


def _tell(machine):
    if machine.findings:
        sys.stderr.write(machine.text() + "\n")
