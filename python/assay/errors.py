"""What the package raises of its own."""


class BadInput(Exception):
    """What was given cannot be used; str() is one line: what, where, and what to do."""


class EngineError(RuntimeError):
    """A fault of assay itself, or a library that does not fit this package."""
