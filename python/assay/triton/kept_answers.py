"""Libraries that asked for the device when they were imported, and keep what they were told."""

from __future__ import annotations

import sys
from types import CodeType

_QUESTIONS = {
    "get_current_target",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "device_count",
    "is_bf16_supported",
}
_NOT_ASKED_OF = ("assay", "torch", "triton", "__main__", "numpy", "_pytest", "pytest")


def kept(modules=None):
    """[(module, question)]: imported modules whose own top level, or a function that it calls, asks about the GPU.

    Only packages in which a Triton kernel is written are looked at.
    """
    from triton.runtime.jit import KernelInterface

    modules = dict(sys.modules if modules is None else modules)
    with_kernels = {
        name.partition(".")[0]
        for name, module in modules.items()
        if any(issubclass(type(value), KernelInterface) for value in list(getattr(module, "__dict__", {}).values()))
    }
    found = []
    for name, module in modules.items():
        package = name.partition(".")[0]
        if package in with_kernels and package not in _NOT_ASKED_OF:
            question = _asked(name, module)
            if question:
                found.append((name, question))
    return sorted(found)


def _asked(name, module):
    spec = getattr(module, "__spec__", None)
    read = getattr(getattr(spec, "loader", None), "get_code", None)
    try:
        code = read(name) if read else None
    except (ImportError, OSError, SyntaxError):
        return None
    return _asked_by(code) if code else None


def _asked_by(code):
    """A question of the module's top level, through its own functions that the top level names."""
    functions = {c.co_name: c for c in code.co_consts if isinstance(c, CodeType)}
    ahead, seen = [code], {code}
    while ahead:
        current = ahead.pop()
        names = set(current.co_names)
        asked = sorted(names & _QUESTIONS)
        if asked:
            return asked[0]
        called = [functions[n] for n in names if n in functions]
        called += [c for c in current.co_consts if isinstance(c, CodeType) and c.co_name.startswith("<")]
        for function in called:
            if function not in seen:
                seen.add(function)
                ahead.append(function)
    return None
