"""The page: the cluster for people, in a browser (docs/use/page.md). It is rendered here, and works without a script.

routes          the addresses, and how one is answered
source          where the objects come from that a view shows: a state dump, or (`live`) the scheduler of this process
view            what a view is: objects that it asks for, and a pure function from these to the context of its template; tables
now, queues, why, applications, nodes, people, history, configuration       the views; `history` has fairness and decisions
past            the page of a dump, a scheduler elsewhere or a recording, for `licorne page` and beside a scheduler that runs
bars, frame     pictures of amounts; templates, units, files and headers
templates/, static/     one template for each view, the style sheet
"""
