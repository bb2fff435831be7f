"""Memories out of a store and into one: the file format, export, import, and what other programs write."""
