"""Accuracy of every method at equal datum gradients: `python benchmarks/accuracy.py`, or `ewsg bench accuracy`."""

import sys

from ewsg.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["bench", "accuracy"]
    main()
