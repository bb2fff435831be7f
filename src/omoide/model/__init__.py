"""Declarative models: fields, options, and the frozen `ModelSpec` a class becomes."""
