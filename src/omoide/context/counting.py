"""Calling the token counter of a user: whatever it raises or returns, recall fails as omoide fails."""

from __future__ import annotations

from sys import float_info

from omoide.core.budget import TokenCounter, estimate_tokens
from omoide.errors import QueryError


def guarded(counter: TokenCounter) -> TokenCounter:
    """The counter, with a QueryError for what it raises and for what is no number of tokens."""
    if counter is estimate_tokens:
        return counter

    def count(text: str, /) -> int:
        try:
            tokens = counter(text)
        except Exception as error:  # noqa: BLE001 - code of the user, whose message may hold what was recalled
            raise QueryError(f"token_counter raised {type(error).__name__}") from None
        if not isinstance(tokens, int | float) or not 0 <= tokens <= float_info.max:
            raise QueryError("token_counter has to return a number of tokens, not negative")
        return tokens

    return count


__all__ = ["guarded"]
