"""Stage: which datasets a subscription delivers.

Takes a subscription's selection and a dataset's filing; gives what joins, what leaves and why.
Rules: paths take in all below them; what is delivered is what matches and is deliverable (coverage
and plan are open to everybody so far); access follows recorded membership.
"""
