"""Laws for content from outside Parley, tried by `make fuzz`, and their runner."""
