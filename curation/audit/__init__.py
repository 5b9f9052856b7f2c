"""Who verifies the verifier? Facts about each one, made by running it on states known to be right or wrong.

A known solution is played; its final state is changed into near misses, which must be rejected, and into states that
mean the same, which must be accepted. What a verifier says of them decides whether it can be trusted as a reward.
"""
