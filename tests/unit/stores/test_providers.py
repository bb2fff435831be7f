"""The providers that come along, against a real model and a real endpoint on this machine."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import minilm

from omoide.core import vectors
from omoide.errors import EmbeddingError, ModelError
from omoide.model.schema import EmbeddingIndex
from omoide.ops import port
from omoide.ops.request import Embed
from omoide.providers import FastEmbedProvider, HttpProvider, OnnxProvider
from omoide.stores import embedding

PAIRS = [
    ("I adopted a puppy last week", "Who has a dog?"),
    ("The database runs on Postgres", "Where do we store data?"),
    ("We ate ramen in Tokyo", "Which food did they have in Japan?"),
]


# ---- a folder


@pytest.fixture(scope="module")
def encoder() -> OnnxProvider:
    return minilm.provider()


def test_a_real_encoder_tells_what_belongs_together(encoder: OnnxProvider) -> None:
    texts = vectors.directions(encoder([text for text, _ in PAIRS]), 3)
    queries = vectors.directions(encoder.embed_query([query for _, query in PAIRS]), 3)
    assert texts.shape == (3, minilm.DIMENSIONS)
    assert (texts @ queries.T).argmax(axis=0).tolist() == [0, 1, 2]


def test_a_batch_gives_the_vectors_of_its_texts(encoder: OnnxProvider) -> None:
    texts = [" ".join(["word"] * (1 + number % 40)) + f" {number}" for number in range(70)] + [""]
    together, alone = encoder(texts), np.concatenate([encoder([text]) for text in texts])
    assert np.abs(together - alone).max() < 1e-4


def test_a_byte_a_dimension_costs_little(encoder: OnnxProvider) -> None:
    """What is stored against what was made: cosines of 60 real texts with 3 real queries."""
    texts = [
        f"{text}, said {name} on day {day}"
        for text, _ in PAIRS
        for name in ("Ann", "Bo")
        for day in range(10)
    ]
    units = vectors.directions(encoder(texts), len(texts))
    held = vectors.Vectors(minilm.DIMENSIONS + vectors.HEADER_BYTES)
    stored = vectors.slots(units, [vectors.digest("kind", text) for text in texts])
    held.put(np.arange(1, len(texts) + 1), b"".join(stored))
    for query in vectors.directions(encoder([query for _, query in PAIRS]), 3):
        found, there = held.cosines(query, len(texts) + 1)
        assert there.tolist() == [False] + [True] * len(texts)
        assert np.abs(found[1:] - units.astype(np.float64) @ query).max() < 0.01


def test_a_folder_without_its_files_says_which(tmp_path: Path) -> None:
    provider = OnnxProvider(tmp_path, name="empty")
    with pytest.raises(EmbeddingError, match=r"empty: there is no model\.onnx") as raised:
        provider(["x"])
    assert raised.value.reason == "missing"
    for wrong in ({}, {"folder": tmp_path, "pooling": "last"}, {"folder": tmp_path, "batch_size": 0}):
        with pytest.raises(ModelError, match="OnnxProvider"):
            OnnxProvider(**wrong)


def test_fastembed_is_named_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(EmbeddingError, match="fastembed is not installed") as raised:
        FastEmbedProvider("some/model")(["x"])
    assert (raised.value.reason, raised.value.hint) == ("missing", "pip install 'omoide[hybrid]'")


# ---- an endpoint


class Endpoint(ThreadingHTTPServer):
    """Answers as an embeddings endpoint does; `answers` take precedence, one a request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.answers: list[tuple[int, bytes]] = []
        self.connections = 0
        self.wait: threading.Event | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Endpoint

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, dict(self.headers), body))
        if self.server.wait is not None:
            self.server.wait.wait(20)
        data = [
            {"index": place, "embedding": [float(len(text)), 1.0]} for place, text in enumerate(body["input"])
        ]
        told = json.dumps({"data": data[::-1]}).encode()
        status, answer = self.server.answers.pop(0) if self.server.answers else (200, told)
        self.send_response(status)
        if status == 302:
            self.send_header("Location", f"{self.server.url}/elsewhere")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    thread = threading.Thread(target=endpoint.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.shutdown()
        thread.join()
        endpoint.server_close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as server:
        yield server


def test_an_endpoint_is_asked_in_batches_over_one_connection(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = HttpProvider(endpoint.url + "/", "small", key="k1", batch_size=2, dimensions=2)
    assert provider(["a", "bb", "ccc"]) == [[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]
    assert provider(["dddd"]) == [[4.0, 1.0]]
    assert endpoint.connections == 1
    path, headers, body = endpoint.requests[0]
    assert (path, headers["Authorization"]) == ("/v1/embeddings", "Bearer k1")
    assert body == {"model": "small", "input": ["a", "bb"], "encoding_format": "float", "dimensions": 2}
    assert [len(body["input"]) for _, _, body in endpoint.requests] == [2, 1, 1]
    monkeypatch.setenv("OMOIDE_EMBEDDING_KEY", "from-env")
    HttpProvider(endpoint.url, "small")(["a"])
    HttpProvider(endpoint.url, "small", key="")(["a"])
    assert endpoint.requests[-2][1]["Authorization"] == "Bearer from-env"
    assert "Authorization" not in endpoint.requests[-1][1]


@pytest.mark.parametrize(
    ("status", "answer", "reason"),
    [
        (500, b"secret text", "failed"),
        (401, b"secret text", "failed"),
        (302, b"", "failed"),
        (200, b"secret text", "answer"),
        (200, b"{}", "answer"),
        (200, b'{"data": []}', "answer"),
        (200, b'{"data": [{"index": 7, "embedding": [1]}]}', "answer"),
        (200, b'{"data": [1]}', "answer"),
    ],
)
def test_a_bad_answer_is_an_error_without_content(
    endpoint: Endpoint, status: int, answer: bytes, reason: str
) -> None:
    endpoint.answers.append((status, answer))
    with pytest.raises(EmbeddingError) as raised:
        HttpProvider(endpoint.url, "small", key="hidden")(["secret text"])
    assert raised.value.reason == reason
    assert "secret" not in f"{raised.value!r}"
    assert len(endpoint.requests) == 1


def test_an_endpoint_that_is_gone_or_slow_is_an_error() -> None:
    with serving() as endpoint:
        provider = HttpProvider(endpoint.url, "small", timeout=0.2)
        provider(["a"])
        endpoint.wait = threading.Event()
        with pytest.raises(EmbeddingError, match="no answer in time") as raised:
            provider(["a"])
        endpoint.wait.set()
    assert raised.value.reason == "timeout"
    with pytest.raises(EmbeddingError, match="no answer: "):
        provider(["a"])


@pytest.mark.parametrize("url", ["ftp://host", "https://user:word@host", "host/v1", "https://host/?key=1"])
def test_a_url_that_cannot_be_meant_is_refused(url: str) -> None:
    with pytest.raises(ModelError, match="HttpProvider"):
        HttpProvider(url, "small")


# ---- calling one


def test_hanging_calls_are_bounded_in_number() -> None:
    stuck = threading.Event()

    def hang(texts: list[str]) -> list[list[float]]:
        stuck.wait(60)
        return [[1.0]]

    request = Embed(EmbeddingIndex("meaning", ("content",), hang, "hang", timeout=0.01), ("a",), query=True)
    for _ in range(embedding.MOST_AT_ONCE):
        with pytest.raises(EmbeddingError, match="took too long"):
            embedding.embed(request)
    with pytest.raises(EmbeddingError, match="have not come back") as raised:
        embedding.embed(request)
    assert raised.value.reason == "timeout"
    stuck.set()
    for _ in range(500):
        if not embedding._running[id(hang)]:
            break
        threading.Event().wait(0.01)
    assert (embedding.embed(Embed(request.index, ("a",)))[0] == [1.0]).all()


def test_a_call_that_gets_no_thread_is_a_failure_and_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def one(texts: list[str]) -> list[list[float]]:
        return [[1.0]]

    request = Embed(EmbeddingIndex("meaning", ("content",), one, "one", timeout=60.0), ("a",), query=True)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", exhausted)
        for _ in range(embedding.MOST_AT_ONCE + 1):
            with pytest.raises(EmbeddingError) as raised:
                embedding.embed(request)
            assert raised.value.reason == "failed"
    assert (embedding.embed(request)[0] == [1.0]).all()


def test_a_deadline_leaves_half_of_it() -> None:
    seen: list[float | None] = []

    def look(texts: list[str]) -> list[list[float]]:
        seen.append(port.remaining())
        return [[1.0]]

    index = EmbeddingIndex("meaning", ("content",), look, "look", timeout=3.0)
    assert embedding._seconds(Embed(index, ("a",))) is None
    assert embedding._seconds(Embed(index, ("a",), query=True)) == 3.0
    with port.deadline(100):
        bound = embedding._seconds(Embed(index, ("a",)))
        assert bound is not None
        assert 40 < bound <= 50
        assert embedding._seconds(Embed(index, ("a",), query=True)) == 3.0
        embedding.embed(Embed(index, ("a",)))
    assert seen[0] is not None  # the deadline is that of the caller, in the thread as well


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_child_counts_anew_and_finds_no_lock_held() -> None:
    request = Embed(EmbeddingIndex("meaning", ("content",), lambda texts: [[1.0]], "one"), ("a",), query=True)
    embedding._running[id(request.index.provider)] = embedding.MOST_AT_ONCE
    with embedding._counting:
        child = os.fork()
        if not child:
            os._exit(0 if embedding.embed(request)[0] == 1.0 else 1)
    _, status = os.waitpid(child, 0)
    embedding._running.clear()
    assert os.waitstatus_to_exitcode(status) == 0


async def test_an_answer_that_comes_too_late_troubles_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    go = threading.Event()

    def late(texts: list[str]) -> list[list[float]]:
        go.wait(60)
        return [[1.0]]

    request = Embed(EmbeddingIndex("meaning", ("content",), late, "late", timeout=0.01), ("a",), query=True)
    with pytest.raises(EmbeddingError, match="took too long"):
        await embedding.aembed(request)
    go.set()
    while embedding._running[id(late)]:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    assert raised == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_child_leaves_the_connections_of_an_endpoint_to_its_parent(endpoint: Endpoint) -> None:
    provider = HttpProvider(endpoint.url, "small")
    provider(["a"])
    child = os.fork()
    if not child:
        os._exit(0 if provider(["bb"]) == [[2.0, 1.0]] else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert endpoint.connections == 2
    assert provider(["ccc"]) == [[3.0, 1.0]]
    assert endpoint.connections == 2
