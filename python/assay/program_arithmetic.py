"""What launches say of their arithmetic: which preset fits a function that declares none."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Iterable

if TYPE_CHECKING:
    from .calling import Operator
    from .machine import Module

#: Families that a preset describes whole: no inverses, no slots, no quotients.
_OF_PRESETS = ("gla", "simple_gla", "retention", "lightning_attn", "linear_attn", "rwkv6")
#: In chunks of 64 tokens: delta rules with an inverse, slots with a softmax between two passes.
_IN_CHUNKS = {
    "delta_rule": "triton-delta-chunk",
    "gated_delta_rule": "triton-delta-chunk",
    "kda": "triton-kda-chunk",
    "gsa": "triton-gsa-chunk",
}
#: One token after the other; dg as the library sums it, q dq - k dk over the tokens from its own to the end: dq and dk
#: are sums of V products with the scale, (V + 2) 2^-24 each, their products with q and k round once, T terms are added.
_RECURRENT = {"preset": "fp32-recurrent", "backward": {"gate_sums": "(V + T + 4) * 2^-24"}}
#: The same of delta rules: v - S^T k rounds twice and is a sum of K products. For gradients it is stored in the inputs' format,
#: and S made of it again; the first part of dk, dv on its way into the second, and the parts of dq, dk, dv by blocks are stored, too.
_RULE_RECURRENT = {
    "preset": "fp32-recurrent",
    "write": "2 * 2^-24",
    "removal": "(K + 3) * 2^-24",
    "backward": {
        "state": {"write": "u + 3 * 2^-24", "removal": "u + (K + 4) * 2^-24", "readout": "u + (V + 8) * 2^-24"},
        "adjoint": {"readout": "2 * u + (V + 8) * 2^-24"},
        "value_readout": "u + (K + 4) * 2^-24",
        "inner": "u + (K + V + 8) * 2^-24",
    },
}
_PRODUCT = re.compile(rb"\b(?:mma\.sync|wgmma\.mma_async)\S*?\.(f32|f16)\.(bf16|f16|tf32|f32)\b")
_LOCATION = re.compile(rb"^\s*\.loc\s+(\d+)\s+(\d+)", re.MULTILINE)
_FILE = re.compile(rb'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)


def of(op: Operator, modules: Iterable[Module]) -> dict[str, Any]:
    """{"arithmetic": as `fuzz` takes it, "why": a line that says so}; nothing where none is known to fit, or nothing was launched."""
    return of_modules(op.name, modules)


def of_modules(op: str, modules: Iterable[Module]) -> dict[str, Any]:
    """The same of an operator by its name."""
    launched = list(modules)
    if op not in (*_OF_PRESETS, *_IN_CHUNKS) or not launched:
        return {}
    for module in launched:
        product = _PRODUCT.search(module.text)
        if product is not None:
            operand = product.group(2).decode()
            where = _line(module.text, product.start())
            return _said(_IN_CHUNKS.get(op, "triton-chunk"), f"matrices of {operand} are multiplied{where}")
    if op == "gsa":
        return {}
    return _said(_RECURRENT if op in _OF_PRESETS else _RULE_RECURRENT, "no launch multiplies matrices")


def _said(arithmetic: str | dict[str, Any], why: str) -> dict[str, Any]:
    preset = arithmetic if isinstance(arithmetic, str) else arithmetic["preset"]
    return {"arithmetic": arithmetic, "why": f"judged as {preset}, since {why}; arithmetic= declares another"}


def _line(text: bytes, at: int) -> str:
    """" at chunk_h.py:140", of the last .loc before."""
    last = None
    for last in _LOCATION.finditer(text, 0, at):
        pass
    if last is None:
        return ""
    names = {number: name.decode(errors="replace") for number, name in _FILE.findall(text)}
    name = names.get(last.group(1), "").rsplit("/", 1)[-1]
    return f" at {name}:{last.group(2).decode()}" if name else ""
