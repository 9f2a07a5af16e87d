"""Campaigns: problems x methods x seeds from one file, resumable, with statistics that can be trusted."""
