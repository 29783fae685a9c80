"""What holds for all tests."""

from hypothesis import settings

# Machines are shared: how long an example takes says nothing of Parley.
settings.register_profile("parley", deadline=None)
settings.load_profile("parley")
