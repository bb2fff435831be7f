"""Models of fastembed: small ONNX models on this machine, fetched from a hub at first use."""

from __future__ import annotations

import threading
from typing import Any

from omoide.errors import EmbeddingError

DEFAULT_MODEL = "BAAI/bge-small-en-v1.5"


class FastEmbedProvider:
    """Vectors by fastembed.

    Args:
        model: A name out of `fastembed.TextEmbedding.list_supported_models()`.
        options: Further arguments of `fastembed.TextEmbedding`, such as `cache_dir`, `threads` or
            `specific_model_path` (weights that are on this machine already).
    Raises, when called:
        EmbeddingError: fastembed is not installed, or the model cannot be loaded (`missing`).
    Cost: a few milliseconds a text; the first call loads, or fetches, the model.
    """

    def __init__(self, model: str = DEFAULT_MODEL, **options: Any) -> None:
        self.name = model
        self._options = options
        self._loading = threading.Lock()
        self._model: Any = None

    def __call__(self, texts: list[str]) -> Any:
        """float32[n, dimensions] of memories."""
        import numpy as np

        return np.array(list(self._loaded().embed(texts)))

    def embed_query(self, texts: list[str]) -> Any:
        """float32[n, dimensions] of queries."""
        import numpy as np

        return np.array(list(self._loaded().query_embed(texts)))

    def __repr__(self) -> str:
        return f"<FastEmbedProvider {self.name}>"

    def _loaded(self) -> Any:
        with self._loading:
            if self._model is None:
                try:
                    from fastembed import TextEmbedding
                except ImportError:
                    raise EmbeddingError(
                        "fastembed is not installed", reason="missing", hint="pip install 'omoide[hybrid]'"
                    ) from None
                try:
                    self._model = TextEmbedding(self.name, **self._options)
                except (ValueError, OSError, RuntimeError) as error:
                    raise EmbeddingError(
                        f"fastembed cannot load {self.name}: {type(error).__name__}", reason="missing"
                    ) from error
            return self._model


__all__ = ["DEFAULT_MODEL", "FastEmbedProvider"]
