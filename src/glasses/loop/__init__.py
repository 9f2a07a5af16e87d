"""The front door: ask/tell, ``minimize`` and what they return."""
