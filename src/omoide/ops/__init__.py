"""Plans: what to ask a store for, without I/O, and the faces that run them."""
