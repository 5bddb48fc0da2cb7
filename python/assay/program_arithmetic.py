"""What launches say of their arithmetic: which preset fits a function that declares none."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable

from . import _engine

if TYPE_CHECKING:
    from .machine import Module


def proposed(modules: Iterable[Module], op: str | None, declared: Any = None) -> dict[str, Any]:
    """kernels/proposed_arithmetic.h of what was launched: "arithmetic", "why", "evidence", "looser", "text"."""
    texts = [{"path": module.path, "text": module.text.decode(errors="replace")} for module in modules]
    answer: dict[str, Any] = _engine.call("arithmetic", {"texts": texts, "operator": op or "", "declared": declared}).value
    return answer


def of(op: str, modules: Iterable[Module]) -> dict[str, Any]:
    """{"arithmetic": as `fuzz` takes it, "why": a line that says so}; nothing where none is known to fit, or nothing was launched."""
    launched = list(modules)
    made = proposed(launched, op) if launched else {"arithmetic": None}
    declared = made["arithmetic"]
    if declared is None:
        return {}
    preset = declared if isinstance(declared, str) else declared["preset"]
    return {"arithmetic": declared, "why": f"judged as {preset}, since {made['why']}; arithmetic= declares another"}
