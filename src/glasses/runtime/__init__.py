"""Running compiled programs: settings of their own, a cache on disk, padded sizes, BLAS threads."""
