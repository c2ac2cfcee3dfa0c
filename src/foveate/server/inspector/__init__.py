"""The inspector: web pages that show what a model saw, why, and what was left out. The service has them below `/ui`.

A page is a function from a request to a dictionary, and a template that shows this dictionary. Pages are rendered on the
server. The script only adds convenience, and nothing is loaded from another host.
"""
