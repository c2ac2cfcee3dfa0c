"""Tasks with dependencies, the stack of goals, and learning from handoffs."""
