"""``python -m glasses`` runs the demonstration."""

from glasses.demo import main

main()
