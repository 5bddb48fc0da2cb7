"""What the generated results have in common: JSON both ways, and how they are shown."""
from __future__ import annotations

import functools
import math
import types
import typing
from dataclasses import dataclass, field, fields
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, Union

from .errors import BadInput

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        return lambda cls: cls


Self = TypeVar("Self", bound="Record")

_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def _kind(hint: Any) -> Any:
    """How a field of this type is read: None as it is, float, a class, ("optional" | "list" | "map", kind)."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return "optional", _kind(inner[0])
    if origin is list:
        return "list", _kind(inner[0])
    if origin is dict:
        return "map", _kind(inner[1])
    return hint if hint is float or isinstance(hint, type) and issubclass(hint, Record) else None


def _read(value: Any, kind: Any) -> Any:
    if kind is None:
        return value
    if kind is float:
        return _SPECIAL[value] if isinstance(value, str) else float(value)
    if isinstance(kind, tuple):
        how, inner = kind
        if how == "optional":
            return None if value is None else _read(value, inner)
        if how == "list":
            return [_read(item, inner) for item in value]
        return {key: _read(item, inner) for key, item in value.items()}
    return kind.from_json(value)


def _written(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        return value if math.isfinite(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, list):
        return [_written(item) for item in value]
    if isinstance(value, dict):
        return {key: _written(item) for key, item in value.items()}
    return value


def as_text(text: str) -> str:
    """Lines of text in a notebook."""
    return f'<pre style="line-height:1.3">{escape(text)}</pre>'


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class Record:
    """A part of a result; fields as in reports/schema.json. Subclasses are dataclasses.

    absent: fields that a document may lack, and that are never null; they are None then, and left out again.
    keys: names in JSON of those fields that have another one here.
    """

    _absent: ClassVar[frozenset[str]] = frozenset()
    _keys: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, absent: str = "", keys: dict[str, str] | None = None) -> None:
        dataclass(kw_only=True)(cls)
        bases = [base for base in cls.__bases__ if issubclass(base, Record)]
        cls._absent = frozenset(absent.split()).union(*(base._absent for base in bases))
        cls._keys = {key: name for base in bases for key, name in base._keys.items()} | (keys or {})

    @classmethod
    @functools.cache
    def _kinds(cls) -> dict[str, tuple[str, Any]]:
        """Python name -> (name in JSON, how it is read)."""
        hints = typing.get_type_hints(cls)
        return {row.name: (cls._keys.get(row.name, row.name), _kind(hints[row.name])) for row in fields(cls)}

    @classmethod
    def from_json(cls: type[Self], given: dict[str, Any]) -> Self:
        """From parsed JSON. A field that only newer or older programs write is left at its default, or out."""
        return cls(**{name: _read(given[key], kind) for name, (key, kind) in cls._kinds().items() if key in given})

    def to_json(self) -> dict[str, Any]:
        """As `json.dumps` takes it; NaN and infinities are the strings "nan", "inf", "-inf". A field that this version
        knows and its maker did not is left out."""
        given = {name: (key, getattr(self, name)) for name, (key, _) in self._kinds().items()}
        return {
            key: _written(value)
            for name, (key, value) in given.items()
            if value is not None or name not in self._absent
        }


class Document(Record):
    """A whole result. str() is what the command line prints; notebooks show its page."""

    def text(self) -> str:
        """What `assay` prints for it."""
        from . import _engine

        return str(_engine.call("text", {"result": self.to_json()}).value["text"])

    def html(self) -> str:
        """The page that `assay report` writes for it, one file that needs nothing else."""
        from . import _engine

        return str(_engine.call("html", {"result": self.to_json()}).value["html"])

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        try:
            page = escape(self.html(), quote=True)
        except BadInput:  # what has no page
            return as_text(self.text())
        return f'<iframe srcdoc="{page}" style="width:100%;height:40em;border:0"></iframe>'
