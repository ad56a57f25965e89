"""Everything about pages: who owns them, how they are found, which goes next, and where their bytes are."""
