"""Speed and memory, measured side by side in one run: ``make bench``. Not part of the package, not part of the tests."""
