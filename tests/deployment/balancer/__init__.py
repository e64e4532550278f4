"""Several servers behind a balancer, with a store that they share, and processes that die."""
