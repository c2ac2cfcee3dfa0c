"""State: records, links and receipts, and the store that keeps them. The truth; everything else is computed from it."""
