"""Speed and memory of polars_oner beside its peers, and beside the least that the work can cost.

``python -m benchmarks`` measures and writes one table; ``python -m benchmarks.growth`` draws how
cost grows with rows and columns. See README.md in this folder.
"""
