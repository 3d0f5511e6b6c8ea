"""The processes of C{benchmarks/ingest.py}."""
