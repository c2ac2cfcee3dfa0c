"""Evaluation: how much of the needed evidence reaches the prompt within a token budget, on public data sets or your own.

    suite -> subsets -> a system stores the documents and renders a prompt for each case -> evidence in it -> report

A *suite* reads a data set: documents, cases and the evidence that each case needs. A *system* answers the cases: foveate
through its public functions, or a baseline to compare it with. `run` scores all systems by the same code. No language
model is involved.
"""
