"""Studies: a file, a database that keeps the results, workers or a person who evaluates. Needs ``glasses[study]``."""
