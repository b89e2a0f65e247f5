"""Stage: when an event is sent to a webhook, and what becomes of it after an answer.

Takes a lane's state, its deliveries and answers; gives outcomes, times and pauses. Rules: order
holds within a dataset, a failed delivery is tried seven times, and one bad event turns nothing off.
"""
