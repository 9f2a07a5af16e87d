"""Studies people keep: a file, a database, workers, a person at a bench. Needs ``pip install 'glasses[study]'``."""
