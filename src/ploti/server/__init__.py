"""The server: sources → build → release → membership → eventlog, behind ports, under an API."""
