"""Laws for what comes from outside, to be tried with `make fuzz`; and what runs them."""
