"""Reading and writing, the lexical index and search: the parts that every SQL store shares."""
