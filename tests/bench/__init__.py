"""Measurements, for `make bench`: medians of several runs on this machine, compared within one
run only.
"""
