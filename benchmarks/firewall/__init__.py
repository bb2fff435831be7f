r"""The never-record firewall beside other detectors: recall, false positives, time, worst cases.

    python -m benchmarks.firewall --corpus POSITIVES.jsonl --corpus NEGATIVES.jsonl --json \
        --rivals popoto,detect-secrets --rival-python popoto=OTHER/bin/python

A corpus is JSONL with `text`, `label` (1 secret, 0 look-alike) and, if known, `category` and `kind`.
"""
