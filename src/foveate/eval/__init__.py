"""The evaluation kit: how much of the needed evidence arrives inside a token budget, on public data sets or on your own.

    suite -> worlds -> system builds a store -> asks case by case -> what stands in the rendered text -> rows -> report

A *suite* reads a data set and says what is to be told, asked and found. A *system* answers: foveate through `compute`, or
a baseline beside it. Both meet in `run`, which scores them all in the same way. No model is asked for anything.
"""
