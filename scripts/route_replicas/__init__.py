"""The parts of scripts/route-two-replicas.py: a router from PyPI, the traffic, and the records."""
