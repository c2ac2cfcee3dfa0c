"""Defines what a record is: kinds, validation, rendering, merging and lifecycle rules. Everything here is pure."""
