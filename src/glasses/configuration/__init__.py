"""Files written by hand: reading them, with errors that name the line and the key."""
