"""Work that nobody waits for: claimed by leases, woken by the log's bell and by due times."""
