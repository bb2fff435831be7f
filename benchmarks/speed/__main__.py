import sys

from benchmarks.speed.suite import main

sys.exit(main())
