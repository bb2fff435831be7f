"""Code of a user on a thread of its own: when it hangs it keeps neither its caller nor the process."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

R = TypeVar("R")


def in_background(name: str, call: Callable[[], R]) -> Future[R]:
    """Make a call on a daemon thread called `name`, in a copy of this context.

    Whoever stops waiting does not end it: what it returns or raises goes to the future all the same.

    Raises:
        RuntimeError: the system gives no thread; nothing was called.
    """
    future: Future[R] = Future()
    future.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            future.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001 - the edge of this thread: it goes to whoever waits
            future.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return future


__all__ = ["in_background"]
