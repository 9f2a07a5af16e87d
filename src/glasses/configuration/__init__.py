"""Files written by hand: reading them, and complaining about them by line and key."""
