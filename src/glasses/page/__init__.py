"""The page of a study in the browser, ``glasses serve``, and its copy in one file, ``glasses report``. Needs
``glasses[study]``."""
