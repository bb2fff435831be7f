import sys

from benchmarks.retrieval.suite import main

sys.exit(main())
