"""What is varied: parameters, the space they span, and its points inside compiled programs."""
