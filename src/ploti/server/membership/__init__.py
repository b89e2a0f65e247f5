"""Stage: which datasets a subscription delivers.

Takes a subscription's selection, a workspace's rights and a dataset's filing; gives what joins,
what leaves and why. Rules: paths take in all below them; what is delivered is what matches, lies in
the coverage, is opened by the plan and is deliverable; a plan that cannot be read changes nothing;
access follows recorded membership.
"""
