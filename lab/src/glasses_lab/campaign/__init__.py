"""Campaigns: problems x methods x seeds from one file, resumable, with paired statistics."""
