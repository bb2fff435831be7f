import sys

from benchmarks.feedback.suite import main

sys.exit(main())
