"""The command line: `omoide`.

main        arguments to exit code; the one place that catches errors
commands    every verb with its options and help
target      which store, model and partition a call means
output      an answer as text for people or as one JSON object
memories, upkeep, scan, demo, bench    what the verbs do, without a terminal
"""
