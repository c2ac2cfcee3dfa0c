"""Plain functions on text: analysis, dates, tokens, redaction, summaries and embeddings."""
