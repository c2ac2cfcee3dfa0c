"""What every SQL store does: reading, writing, postings and ranking."""
