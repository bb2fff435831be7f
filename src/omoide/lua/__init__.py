"""Server-side scripts: one verb a `.lua` file, shared code in `lib/`, each with a parsed header."""

from omoide.lua.loader import Script, load, names

__all__ = ["Script", "load", "names"]
