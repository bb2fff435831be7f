import sys

from benchmarks.commands.suite import main

sys.exit(main())
