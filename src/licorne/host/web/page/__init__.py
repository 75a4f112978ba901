"""The page: the cluster for people, in a browser (docs/use/page.md). It is rendered here, and works without a script.

routes          the addresses, and how one is answered
source          where the objects come from that a view shows: `live` for the scheduler of this process, or a state dump
view            what a view is: objects that it asks for, and a pure function from these to the context of its template
now, queues, why, applications, nodes, people, fairness, decisions, configuration        the views
changes         what of a view has changed from one moment to another
streams         by which a page learns that something has changed
past            moments of the recording of a scheduler that runs, by a process of their own
opened          the page of a dump, a scheduler elsewhere or a recording, for `licorne page`
tables          sorting, filtering and paging by the address; `bars`: pictures of amounts
frame           templates, units, files and headers
templates/, static/     one template for each view, the style sheet
"""
