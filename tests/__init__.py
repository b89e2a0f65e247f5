"""What shows that ploti does what it says."""
