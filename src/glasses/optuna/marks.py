"""System attributes by which this package marks trials. Users' attributes are kept apart, so none can be mistaken for one."""

POINT = "glasses:point"  # of a running trial: its point in internal numbers, before the parameters are set one by one
LOST = "glasses:lost"  # of a failed trial whose worker died: it says nothing about the point
UNPAID = "glasses:unpaid"  # of a lost trial that was not begun because others had spent the rest: it is not queued again
REASON = "glasses:reason"  # of an evaluation that failed by itself: why
SIGN = "glasses:sign"  # of an evaluation that failed by itself: in which way (``loop.broken``)
DETAILS = "glasses:details"  # of such an evaluation: its traceback, or the last errors of its command
BROKEN = "glasses:broken_objective"  # of the last of some failures of a broken objective: the numbers of all of them
LATE = "glasses:late_result_of"  # of a result that came back after its trial was taken for lost: the number of that trial
OUTSIDE = "glasses:outside_budget"  # of an evaluation from before the study: evidence without a cost
WITHDRAWN = "glasses:withdrawn"  # of a result that a person took out of the data; never stored, made from the list of changes
CANCELLED = "glasses:cancelled"  # of a trial that was asked for and not done; never stored, made from the list of changes
ASKED = "glasses:asked"  # a person evaluates this one by hand; no worker waits for it
TOLD_BY = "glasses:told_by"  # who told the result of an evaluation done by hand
RETRIED = "glasses:retried"  # of a repetition that a person asked for: who, when and why
