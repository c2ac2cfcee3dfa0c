"""What a record is: its kinds, how it is made, rendered, merged and aged. Everything here is pure."""
