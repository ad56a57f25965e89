"""The parts of scripts/bench-attention.py."""
