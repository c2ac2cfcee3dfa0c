"""Operations on records: add, edit, supersede, forget, export, maintain."""
