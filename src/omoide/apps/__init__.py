"""Programs on top of the library: nothing below imports from here."""
