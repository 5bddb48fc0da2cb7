"""What the package raises of its own."""


class BadInput(Exception):
    """What was given cannot be used; str() is one line: what, where, and what to do."""


class Refused(Exception):
    """A function that is fuzzed does not take the case: it is left out, and counted with its reason."""


class EngineError(RuntimeError):
    """A fault of assay itself, or a library that does not fit this package."""
