"""Measurements for `make bench`: medians of several runs on this machine; compare them only within
one run.
"""
