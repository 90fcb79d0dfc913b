"""The file of a run: one zip archive of arrays (`.npz`) with a JSON header, written atomically, never pickled."""
