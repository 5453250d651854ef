"""Side-by-side speed, printed as ratios of two times taken in the same run: ``python -m benchmarks``."""
