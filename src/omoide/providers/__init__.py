"""Providers of vectors for an `EmbeddingField`. Any callable from texts to vectors is one; three are here.

    FastEmbedProvider   models of fastembed (`pip install 'omoide[hybrid]'`), fetched at first use
    OnnxProvider        a folder with an ONNX model and its tokenizer, on this machine
    HttpProvider        any endpoint that speaks the embeddings call of the OpenAI API

    provider(texts: list[str]) -> array [n, dimensions]       or something that is awaited for one
    provider.embed_query(texts)                               optional: the same for queries
    provider.name                                             optional: what its vectors are called

Making one loads nothing: models are loaded, and connections opened, at the first call. Each may be used by
several threads.
"""

from __future__ import annotations

from omoide.providers.fastembed import FastEmbedProvider
from omoide.providers.http import HttpProvider
from omoide.providers.onnx import OnnxProvider

__all__ = ["FastEmbedProvider", "HttpProvider", "OnnxProvider"]
