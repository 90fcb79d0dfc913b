"""The accuracy benchmark: `ewsg bench accuracy`."""
