import sys

from benchmarks.firewall.suite import main

sys.exit(main())
