"""Which draft is best for a target: the view Drafts of the Models place.

`DraftsWork` judges the drafts on a thread (`lab/drafts/trials.py`) while the chat's engine is lent, and
keeps the results of each target in a file. `DraftsPage` shows the files that can draft for a target
(`DraftList`), with the results of a moment ago or of an earlier day.
"""
