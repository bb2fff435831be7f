"""An endpoint that speaks the embeddings call of the OpenAI API, which many servers and services do.

    POST <url>/embeddings   {"model": ..., "input": [text, ...], "encoding_format": "float"}
                            {"data": [{"index": 0, "embedding": [...]}, ...]}

No redirect is followed, so that the key goes to no other host. Errors name the status and nothing of what
was sent or answered.
"""

from __future__ import annotations

import json
import os
from collections import deque
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from omoide.errors import EmbeddingError, ModelError
from omoide.settings import MOST_SECONDS, embedding_key

MOST_ANSWER_BYTES = 256 * 1024 * 1024
_KEPT = 4


class HttpProvider:
    """Vectors from an endpoint.

    Args:
        url: Base of the API, such as `https://host/v1`; `/embeddings` is added.
        model: The model's name there, which names the vectors as well.
        key: Sent as a bearer token; default: `OMOIDE_EMBEDDING_KEY`, read at each call; "" sends none.
        dimensions: Asks for shorter vectors where the model can make them.
        batch_size: Texts a request.
        timeout: Seconds for a request.
    Raises, when called:
        EmbeddingError: no answer, a status other than 200, or an answer that is not one.
    Cost: one request per `batch_size` texts; up to 4 connections are kept.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        dimensions: int | None = None,
        batch_size: int = 128,
        timeout: float = 30.0,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise ModelError("HttpProvider needs an http or https URL without credentials or a query")
        if not model or batch_size < 1 or not 0 < timeout <= MOST_SECONDS:
            raise ModelError("HttpProvider needs a model, a batch_size of at least 1 and a timeout above 0")
        self.name = model if dimensions is None else f"{model}/{dimensions}"
        self._kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._host, self._port = parts.hostname, parts.port
        self._path = f"{parts.path.rstrip('/')}/embeddings"
        self._model, self._key, self._dimensions = model, key, dimensions
        self._batch_size, self._timeout = batch_size, timeout
        self._idle: deque[HTTPConnection] = deque(maxlen=_KEPT)
        self._left_to_parent: list[deque[HTTPConnection]] = []
        self._owner = os.getpid()

    def __call__(self, texts: list[str]) -> list[list[float]]:
        """Vectors of texts, in their order."""
        found: list[list[float]] = []
        for start in range(0, len(texts), self._batch_size):
            found += self._request(texts[start : start + self._batch_size])
        return found

    def close(self) -> None:
        """Close the connections that are kept; the provider stays usable."""
        while self._idle:
            self._idle.pop().close()

    def __del__(self) -> None:
        if hasattr(self, "_idle"):
            self.close()

    def __repr__(self) -> str:
        return f"<HttpProvider {self.name} at {self._host}>"

    def _request(self, texts: list[str]) -> list[list[float]]:
        wanted: dict[str, Any] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._dimensions is not None:
            wanted["dimensions"] = self._dimensions
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        key = embedding_key() if self._key is None else self._key
        if key:
            headers["Authorization"] = f"Bearer {key}"
        return self._vectors(self._exchange(json.dumps(wanted).encode(), headers), len(texts))

    def _exchange(self, body: bytes, headers: dict[str, str]) -> bytes:
        """The body of an answer; a kept connection that the server has closed meanwhile is replaced once.

        After a fork the parent's connections stay the parent's.
        """
        if self._owner != os.getpid():
            self._left_to_parent.append(self._idle)
            self._owner, self._idle = os.getpid(), deque(maxlen=_KEPT)
        while True:
            try:
                connection, kept = self._idle.pop(), True
            except IndexError:
                connection, kept = self._kind(self._host, self._port, timeout=self._timeout), False
            try:
                connection.request("POST", self._path, body, headers)
                response = connection.getresponse()
                answer = response.read(MOST_ANSWER_BYTES)
            except TimeoutError:
                connection.close()
                raise EmbeddingError(f"{self.name}: no answer in time", reason="timeout") from None
            except (OSError, HTTPException) as error:
                connection.close()
                if kept:
                    continue
                raise EmbeddingError(f"{self.name}: no answer: {type(error).__name__}") from None
            self._keep(connection, response)
            if response.status != 200:
                raise EmbeddingError(f"{self.name}: the endpoint answered {response.status}")
            return answer

    def _keep(self, connection: HTTPConnection, response: HTTPResponse) -> None:
        if response.will_close or not response.isclosed():
            connection.close()
        else:
            self._idle.append(connection)

    def _vectors(self, answer: bytes, count: int) -> list[list[float]]:
        try:
            data = json.loads(answer)["data"]
            found = {int(one.get("index", place)): one["embedding"] for place, one in enumerate(data)}
            return [found[place] for place in range(count)]
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            raise EmbeddingError(f"{self.name}: the answer holds no vectors", reason="answer") from None


__all__ = ["HttpProvider"]
