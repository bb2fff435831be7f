"""What can go wrong, as one tree.

    OmoideError
    ├── ModelError                          a class definition or a schema that cannot work
    ├── FieldError (ValueError)             a value that breaks a rule of its field
    ├── QueryError (ValueError)             a call that names no partition, or asks what no index answers
    ├── NotFoundError (LookupError)         no such record
    ├── ConflictError                       a lost race, or a clash with a unique record
    ├── PolicyError                         refused by the never-record firewall or a write filter
    ├── EmbeddingError                      a provider of vectors failed
    ├── RuleError (ValueError)              a policy or a rule of the firewall that cannot work
    ├── TransferError (ValueError)          a file that cannot be imported, or written
    └── StoreError
        ├── StoreUnavailableError (ConnectionError)   no server answers
        ├── StoreTimeoutError (TimeoutError)          no answer in time
        ├── CapabilityError                 the server, or this machine, lacks something omoide needs
        ├── CorruptRecordError              stored bytes that are not what was written
        └── ScriptError                     a server-side script failed

Every error has a `hint`, what to do next where there is something to do and "" elsewhere, which a
traceback shows as a note, and typed attributes; none holds the content of a memory.
"""

from __future__ import annotations


class OmoideError(Exception):
    """Root of the tree."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        if hint:
            self.add_note(hint)


class ModelError(OmoideError):
    """A class definition or a stored schema that cannot work."""


class FieldError(OmoideError, ValueError):
    """A value that breaks a rule of its field; nothing was written.

    Attributes: `model`, `field` and `rule` (what the value must be).
    """

    def __init__(self, model: str, field: str, rule: str, *, hint: str = "") -> None:
        super().__init__(f"{model}.{field}: {rule}", hint=hint)
        self.model = model
        self.field = field
        self.rule = rule


class QueryError(OmoideError, ValueError):
    """A call that names no partition, or asks for something no index answers."""


class NotFoundError(OmoideError, LookupError):
    """No such record in the partition."""


class ConflictError(OmoideError):
    """A lost race or a clash with a unique record; nothing changed.

    Attributes: `reason` (`version`, `duplicate`, `exists`, `deleted`; of a version to supersede `missing`,
    `closed`, `other_key`; of a thread `operation`), `duplicate_of` (id or None).
    """

    def __init__(self, message: str, *, reason: str, duplicate_of: str | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
        self.duplicate_of = duplicate_of


class PolicyError(OmoideError):
    """Refused by the never-record firewall or a write filter. Attribute: `reason`."""

    def __init__(self, message: str, *, reason: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class EmbeddingError(OmoideError):
    """A provider of vectors failed; what was to be embedded is not harmed.

    Attribute: `reason`: `failed` (it raised), `timeout`, `answer` (what it returned are not the vectors
    asked for) or `missing` (a package or file it needs).
    """

    def __init__(self, message: str, *, reason: str = "failed", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class RuleError(OmoideError, ValueError):
    """A setting of a `Policy` that cannot work, or a rule that could be slow or match everything.

    Attribute: `rule`, the id of the rule, "" for the policy as a whole.
    """

    def __init__(self, rule: str, problem: str, *, hint: str = "") -> None:
        super().__init__(f"rule {rule!r}: {problem}" if rule else problem, hint=hint)
        self.rule = rule


class TransferError(OmoideError, ValueError):
    """A file of memories that cannot be imported as it is, or written; unless it says so nothing was stored.

    Attribute: `place`, where it is wrong ("line 7"), "" for the file as a whole.
    """

    def __init__(self, message: str, *, place: str = "", hint: str = "") -> None:
        super().__init__(f"{place}: {message}" if place else message, hint=hint)
        self.place = place


class StoreError(OmoideError):
    """The store failed."""


class StoreUnavailableError(StoreError, ConnectionError):
    """No server answers, or one that does takes nothing: wrong password, loading, read-only, out of memory.

    This is an outage, never "no memories".
    """


class StoreTimeoutError(StoreError, TimeoutError):
    """No answer within the deadline; a write may or may not have happened."""


class CapabilityError(StoreError):
    """The server, or this machine, lacks something omoide needs."""


class CorruptRecordError(StoreError):
    """Stored bytes are not what was written; `omoide doctor` says more."""


class ScriptError(StoreError):
    """A server-side script failed. Attribute: `script`."""

    def __init__(self, message: str, *, script: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.script = script
