"""Rules that need no execution: what is wrong can be read from the parts. Each returns findings.

The synthesis sends what they find back to the model; `awm-studio check` shows it to a person.
"""
