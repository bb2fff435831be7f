"""A sentence encoder from files: an ONNX model and its `tokenizer.json`.

    texts ──tokenizer──▶ ids, mask ──model──▶ token states [n, tokens, d] ──mean over mask──▶ [n, d]

A model that gives one state a text ([n, d]) is taken at its word.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omoide.errors import EmbeddingError, ModelError

POOLINGS = ("mean", "first")


class OnnxProvider:
    """Vectors by onnxruntime, on this machine's processor.

    Args:
        folder: Holds `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`.
        model, tokenizer: Paths of the two, in place of those in the folder.
        name: What its vectors are called; default: the name of the folder, or of the model's file.
        pooling: `mean` over a text's tokens, or its `first` token (models of the BGE kind).
        max_tokens: Tokens of a text that count.
        query_prefix, passage_prefix: What goes before a query, a memory (`query: `, `passage: ` for E5).
        batch_size: Texts given to the model at once, those of like length together.
        threads: Threads of one call; default: what onnxruntime chooses.
    Raises, when called:
        EmbeddingError: onnxruntime, tokenizers or a file is missing.
    Needs: `pip install onnxruntime tokenizers`, which `omoide[hybrid]` brings.
    Source: Reimers & Gurevych 2019 for the pooling.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        model: str | Path | None = None,
        tokenizer: str | Path | None = None,
        name: str | None = None,
        pooling: str = "mean",
        max_tokens: int = 256,
        query_prefix: str = "",
        passage_prefix: str = "",
        batch_size: int = 32,
        threads: int | None = None,
    ) -> None:
        if folder is None and (model is None or tokenizer is None):
            raise ModelError("OnnxProvider needs a folder, or both a model and a tokenizer")
        if pooling not in POOLINGS:
            raise ModelError(f"OnnxProvider pools by {' or '.join(POOLINGS)}")
        if max_tokens < 1 or batch_size < 1:
            raise ModelError("OnnxProvider needs max_tokens and batch_size of at least 1")
        base = Path(folder or ".")
        inner = base / "onnx" / "model.onnx"
        self._model = Path(model) if model else inner if inner.is_file() else base / "model.onnx"
        self._tokenizer = Path(tokenizer) if tokenizer else base / "tokenizer.json"
        self.name = name or (base.resolve().name if folder else self._model.stem)
        self._pooling, self._max_tokens, self._batch_size = pooling, max_tokens, batch_size
        self._prefixes = (passage_prefix, query_prefix)
        self._threads = threads
        self._loading = threading.Lock()
        self._loaded: tuple[Any, Any, frozenset[str]] | None = None

    def __call__(self, texts: list[str]) -> Any:
        """float32[n, dimensions] of memories. Cost: 2 to 10 ms a text for a model of MiniLM's size."""
        return self._embed([self._prefixes[0] + text for text in texts])

    def embed_query(self, texts: list[str]) -> Any:
        """float32[n, dimensions] of queries."""
        return self._embed([self._prefixes[1] + text for text in texts])

    def __repr__(self) -> str:
        return f"<OnnxProvider {self.name}>"

    def _embed(self, texts: Sequence[str]) -> Any:
        import numpy as np

        tokenizer, session, inputs = self._load()
        encoded = tokenizer.encode_batch(list(texts))
        order = sorted(range(len(texts)), key=lambda place: len(encoded[place].ids))
        found: list[Any] = [None] * len(texts)
        for start in range(0, len(order), self._batch_size):
            places = order[start : start + self._batch_size]
            longest = max(len(encoded[place].ids) for place in places)
            ids = np.zeros((len(places), longest), np.int64)
            mask = np.zeros((len(places), longest), np.int64)
            for line, place in enumerate(places):
                own = encoded[place].ids
                ids[line, : len(own)], mask[line, : len(own)] = own, 1
            given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            states = session.run(None, {name: given[name] for name in inputs & given.keys()})[0]
            for place, vector in zip(places, self._pooled(states, mask), strict=True):
                found[place] = vector
        return np.array(found, dtype=np.float32)

    def _pooled(self, states: Any, mask: Any) -> Any:
        if states.ndim == 2:
            return states
        if self._pooling == "first":
            return states[:, 0]
        weights = mask[..., None].astype(states.dtype)
        return (states * weights).sum(axis=1) / weights.sum(axis=1).clip(1)

    def _load(self) -> tuple[Any, Any, frozenset[str]]:
        with self._loading:
            if self._loaded is None:
                for path in (self._model, self._tokenizer):
                    if not path.is_file():
                        raise EmbeddingError(f"{self.name}: there is no {path.name}", reason="missing")
                try:
                    from onnxruntime import InferenceSession, SessionOptions
                    from tokenizers import Tokenizer
                except ImportError as error:
                    raise EmbeddingError(
                        f"{error.name} is not installed",
                        reason="missing",
                        hint="pip install 'omoide[hybrid]'",
                    ) from None
                options = SessionOptions()
                options.log_severity_level = 3
                if self._threads is not None:
                    options.intra_op_num_threads = self._threads
                session = InferenceSession(
                    str(self._model), sess_options=options, providers=["CPUExecutionProvider"]
                )
                tokenizer = Tokenizer.from_file(str(self._tokenizer))
                tokenizer.no_padding()
                tokenizer.enable_truncation(max_length=self._max_tokens)
                self._loaded = tokenizer, session, frozenset(one.name for one in session.get_inputs())
            return self._loaded


__all__ = ["OnnxProvider"]
