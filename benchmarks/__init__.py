"""Benchmarks: speed and retrieval quality of omoide beside other systems, in one interleaved run.

Run from a checkout, with the `bench` extra for the other systems:

    python -m benchmarks.speed --sizes 1000,20000 --rivals popoto,rank-bm25 --json
    python -m benchmarks.retrieval --data FILE --systems omoide,popoto,bm25s --json

Progress goes to stderr; a Markdown table, or with `--json` one JSON object, to stdout.
"""
