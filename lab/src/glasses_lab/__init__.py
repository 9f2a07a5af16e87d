"""Research with GLASSES: test problems, campaigns that compare methods, the paper reproduced."""
