"""Receipts of computed contexts: writing, listing, explaining, replaying and measuring them."""
