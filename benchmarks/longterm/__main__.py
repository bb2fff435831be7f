import sys

from benchmarks.longterm.suite import main

sys.exit(main())
