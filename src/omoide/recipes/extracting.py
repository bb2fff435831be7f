"""Calling an extractor without letting it hold up, or end, a turn.

The two extractors of this package run in place. Any other is someone's code, which may wait for a
language model: it runs on a daemon thread, or as a task in the async calls, and is left behind
when its time is up. The type of what it raises is handed back, and the caller reports it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from omoide.recipes.extractors import Draft, Extractor, raw_turn, statements
from omoide.stores.background import in_background
from omoide.types import Seconds

if TYPE_CHECKING:
    import asyncio

EXTRACTOR_FAILED = "extractor_failed"
EXTRACTOR_TIMEOUT = "extractor_timeout"

_IN_PLACE = (raw_turn, statements)


class ExtractionError(Exception):
    """An extractor gave no answer.

    Attributes: `reason` (`extractor_failed` or `extractor_timeout`), `raised` (type of what it raised or "").
    """

    def __init__(self, reason: str, raised: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.raised = raised


def extract(extractor: Extractor, text: str, seconds: Seconds) -> list[Draft]:
    """What an extractor makes of a text, within `seconds`.

    Raises:
        ExtractionError: it failed, took too long, or returned something that is not drafts.
    """
    if extractor in _IN_PLACE:
        return _drafts(extractor(text))
    future = _start(extractor, text)
    try:
        error = future.exception(timeout=seconds)
    except TimeoutError:
        raise ExtractionError(EXTRACTOR_TIMEOUT) from None
    if error is not None:
        raise _failed(error) from None
    return future.result()


async def aextract(extractor: Extractor, text: str, seconds: Seconds) -> list[Draft]:
    """Async twin of `extract`; a coroutine function runs as a task of this loop."""
    if extractor in _IN_PLACE:
        return _drafts(extractor(text))
    import asyncio

    waited: asyncio.Future[list[Draft]]
    if _is_async(extractor):
        waited = asyncio.ensure_future(_await(extractor, text))
    else:
        waited = asyncio.wrap_future(_start(extractor, text))
    try:
        done, _ = await asyncio.wait({waited}, timeout=seconds)
    finally:
        if not waited.done():
            waited.cancel()
    if not done:
        raise ExtractionError(EXTRACTOR_TIMEOUT)
    if waited.cancelled():
        raise ExtractionError(EXTRACTOR_FAILED)
    error = waited.exception()
    if error is not None:
        raise _failed(error) from None
    return waited.result()


def _start(extractor: Extractor, text: str) -> Future[list[Draft]]:
    """Run an extractor in the background."""

    def call() -> list[Draft]:
        made: Any = extractor(text)
        return _drafts(_complete(made) if inspect.isawaitable(made) else made)

    try:
        return in_background("omoide-extractor", call)
    except RuntimeError as error:
        raise _failed(error) from None


def _failed(error: BaseException) -> ExtractionError:
    """What an extractor raised, as its type: its message may hold what was said."""
    return ExtractionError(
        EXTRACTOR_FAILED, "" if isinstance(error, ExtractionError) else type(error).__name__
    )


def _complete(made: Any) -> Any:
    """Run a coroutine to its end on a loop of this thread."""
    import asyncio

    return asyncio.run(_finish(made))


async def _await(extractor: Extractor, text: str) -> list[Draft]:
    return _drafts(await _finish(extractor(text)))


async def _finish(made: Any) -> Any:
    return await made if inspect.isawaitable(made) else made


def _is_async(extractor: Extractor) -> bool:
    return inspect.iscoroutinefunction(extractor) or inspect.iscoroutinefunction(type(extractor).__call__)


def _drafts(made: Any) -> list[Draft]:
    """Drafts as a list of texts and of dicts by field name; any other shape is a failure, never "nothing".

    It runs where the extractor runs: what is lazy in an answer is still code of the user.
    """
    if isinstance(made, str | bytes) or not hasattr(made, "__iter__"):
        raise ExtractionError(EXTRACTOR_FAILED)
    drafts: list[Draft] = []
    for draft in made:
        settled = dict(draft) if isinstance(draft, Mapping) else draft
        named = isinstance(settled, dict) and all(isinstance(name, str) for name in settled)
        if not named and not isinstance(settled, str):
            raise ExtractionError(EXTRACTOR_FAILED)
        drafts.append(settled)
    return drafts


__all__ = ["EXTRACTOR_FAILED", "EXTRACTOR_TIMEOUT", "ExtractionError", "aextract", "extract"]
