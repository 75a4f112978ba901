"""Printing the answer to "why does it wait" for people: the sentence first, then what would help, then the facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from licorne._wording import counted
from licorne.answers.chain import Chain, LimitLevel, QueueLevel
from licorne.answers.changes import Change, LimitMax, MaxApplications, QueueMax
from licorne.answers.proposals import Proposals
from licorne.answers.weighed import Weighed
from licorne.answers.why import UNSEEN, Answer, ApplicationAnswer, AskAnswer, Group, Overview
from licorne.cli.sheets import Sheet, output, widened
from licorne.config.quantity import spoken
from licorne.core.base.states import SECOND_NS
from licorne.state.recording.moments import written
from licorne.state.restored import Note
from licorne.workload.quantities import amount, duration

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 30
"""Rows of a table, at most; `--json` has all."""

ASSUMED = ("assumed", "unknown")
"""The kinds of notes that are counted unless they are asked for."""
LOGGED = 3
"""The most entries that are printed of the log that the scheduler itself keeps of an ask."""
FITS = {True: "nothing: it would fit", False: "nothing that is shown"}
"""What is said of a node that would take an ask, by whether node constraints are known."""
CUT_SHORT = "A search was cut short: --effort lets the trials cost more, --limit take longer."


def show(
    answer: Answer,
    console: Console | None = None,
    *,
    recorded: bool = False,
    config: str = "",
    assumptions: bool = False,
) -> None:
    """Print an answer on `console`, by default standard output.

    `recorded`: it is about a moment of a recording. `config`: the file with the configuration under which it holds; "": the
    one in force. `assumptions`: those that it rests on are listed.
    """
    printed = _Printed(output() if console is None else widened(console))
    if recorded:
        print_moment(printed.console, answer.at_s)
    if config:
        printed.line(f"Under {config}, after the scheduler's next decisions:")
        printed.line()
    match answer:
        case AskAnswer():
            printed.ask(answer)
        case ApplicationAnswer():
            printed.application(answer)
        case Overview():
            printed.overview(answer)
    print_notes(printed.console, answer.notes, assumptions=assumptions)


class _Printed:
    def __init__(self, console: Console) -> None:
        self.console = console

    def line(self, text: str = "", style: str = "") -> None:
        self.console.print(text, style=style, markup=False, soft_wrap=not self.console.is_terminal)

    def ask(self, answer: AskAnswer) -> None:
        """Print the answer for an ask."""
        name = f"{answer.pod} ({answer.key})" if answer.pod else answer.key
        since_s = answer.at_s - answer.since_s
        state = answer.state
        if state in ("waits", "runs") and since_s > 0:  # a dump does not say since when an allocation runs
            state = f"{state}, for {duration(since_s)}"
        self.line(f"{name} of application {answer.application} in {answer.queue}: {state}", style="bold")
        self.line(answer.sentence)
        if answer.weighed is not None:
            self.line(_weighed(answer.weighed))
        if answer.chain is not None:
            self.others(answer, answer.chain)
        self.log(answer)
        self.line()
        if answer.proposals is not None:
            self.proposals(answer.proposals, answer.chain, shown=answer.has_constraints)
        if answer.chain is not None:
            self.chain(answer, answer.chain)

    def others(self, answer: AskAnswer, chain: Chain) -> None:
        """Print the reasons beside the most important one: those of now, and those that show when these are gone."""
        said = {answer.sentence}
        for reason in chain.reasons:
            if reason.text not in said:
                said.add(reason.text)
                self.line(f"Also: {reason.text}")

    def log(self, answer: AskAnswer) -> None:
        """Print the newest entries of the log that the dumped scheduler itself kept of the ask (`allocationLog`)."""
        for entry in answer.log[:LOGGED]:
            ago_s = answer.at_s - entry.last_occurrence / SECOND_NS
            ago = "under a second" if ago_s < 1 else duration(ago_s)
            self.line(f"The scheduler's own log: {entry.message} ({counted(entry.count, 'time')}, last {ago} before)")

    def proposals(self, found: Proposals, chain: Chain | None, *, shown: bool) -> None:
        """Print what would let the ask run, and values of the configuration as they are written there.

        `shown`: node constraints are known.
        """
        trials = counted(found.trials, "trial")
        if found.by_itself and not shown:
            self.line(f"By what the state shows, it is placed on {found.node} {_when(found.after_s)}.")
        elif found.by_itself:
            self.line(f"It needs no change: it is placed on {found.node} {_when(found.after_s)}.")
        elif found.found:
            self.line("It would run with any one of these:", style="bold")
            for number, proposal in enumerate(found.found, 1):
                when = _when(proposal.after_s)
                least = "" if proposal.smallest else " (perhaps less would do)"
                self.line(f"  {number}. {proposal.text}{least}")
                for value in _values(proposal.changes, chain):
                    self.line(f"     {value}")
                self.line(f"     then it is placed on {proposal.node} {when}")
            limits = "" if shown else f", and {UNSEEN} are not known"
            self.line(f"Each was tried on a copy, where all else that waits competes{limits} ({trials}).")
        elif found.complete:
            self.line(f"No change of the configuration or the nodes was found with which it would run ({trials}).")
        else:
            self.line(f"{CUT_SHORT} No change with which it would run was found until then ({trials}).")
        if found.untried:
            self.line(f"The search left out: {'; '.join(found.untried)}.")
        if found.found and not found.complete:
            self.line(CUT_SHORT)
        self.line()

    def chain(self, answer: AskAnswer, chain: Chain) -> None:
        """Print what the ask has to pass, from root to node."""
        whom = ", one member of the gang" if any(each.kind == "gang" for each in chain.reasons) else ""
        sheet = Sheet(
            f"the way from root to a node, for {_amounts(answer.resource)}{whom}",
            ("<where", "<resource", "asked", "used", "max", "guaranteed", "missing"),
            drop=("guaranteed",),
        )
        for level in chain.queues:
            where = "the cluster" if level.queue == "root" else level.queue
            self.rows(sheet, where, answer.resource, level.allocated, level.max, level.guaranteed, level.missing)
            self.applications(sheet, where, level.running_applications, level.max_applications)
        for limit in chain.limits:
            where = f"{limit.kind} {limit.name} at {limit.queue}"
            self.rows(sheet, where, answer.resource, limit.used, limit.max, None, limit.missing)
            self.applications(sheet, where, limit.running_applications, limit.max_applications)
        sheet.print(self.console)
        fits = FITS[answer.has_constraints]
        nodes = Sheet("nodes, by what keeps the ask off them", ("~reason", "nodes"))
        for why, number in nodes.first(list(chain.nodes.items()), SHOWN, "reason"):
            nodes.add(why or fits, f"{number:,}")
        nodes.print(self.console)
        nearest = Sheet("the nodes that come nearest", ("<node", "~reason", "~missing there"), drop=("reason",))
        for node in chain.nearest:
            nearest.add(node.node, node.why or fits, _amounts(node.missing) or "-")
        nearest.print(self.console)

    @staticmethod
    def rows(
        sheet: Sheet,
        where: str,
        asked: Mapping[str, int],
        used: Mapping[str, int],
        most: Mapping[str, int] | None,
        guaranteed: Mapping[str, int] | None,
        missing: Mapping[str, int],
    ) -> None:
        """Add rows to the table of bounds: one for each type that the ask wants and that `where`, a queue, user or group, bounds."""
        most, guaranteed = most or {}, guaranteed or {}
        for name in asked:
            if name in most or name in guaranteed:
                values = (used.get(name, 0), most.get(name), guaranteed.get(name), missing.get(name))
                cells = ("-" if value is None else amount(name, value) for value in values)
                sheet.add(where, name, amount(name, asked[name]), *cells)

    @staticmethod
    def applications(sheet: Sheet, where: str, running: int, most: int) -> None:
        """Add a row for the maximum of running applications, if there is one."""
        if most:
            sheet.add(where, "applications", "1", f"{running:,}", f"{most:,}", "-", "-" if running < most else "1")

    def application(self, answer: ApplicationAnswer) -> None:
        """Print the answer for an application."""
        since = duration(max(0.0, answer.at_s - answer.since_s))
        self.line(
            f"application {answer.application} in {answer.queue}: {answer.state}, for {since}; "
            f"{answer.running:,} running, {answer.waiting:,} waiting",
            style="bold",
        )
        if answer.first is None:
            self.line(answer.sentence)
            return
        if len(answer.groups) > 1:
            self.line()
            self.groups("what of it waits, by reason", answer.groups, short=True)
        self.unexplained(answer.unexplained)
        self.line()
        self.line("The ask whose turn comes first:")
        self.ask(answer.first)

    def overview(self, answer: Overview) -> None:
        """Print what waits."""
        waiting, running = counted(answer.waiting, "ask"), counted(answer.running, "allocation")
        self.line(f"{waiting} waiting, {running} running", style="bold")
        self.line()
        if answer.groups:
            self.groups("what waits, by reason", answer.groups)
        if answer.groups and not answer.has_constraints:
            self.line(f"{UNSEEN[0].upper()}{UNSEEN[1:]} are not in this state: asks may wait for them too.")
        self.unexplained(answer.unexplained)
        sheet = Sheet("pods that the scheduler is not asked for, by reason", ("~reason", "pods", "=one of them"))
        for reason, pods in sheet.first(list(answer.held.items()), SHOWN, "reason"):
            sheet.add(reason, f"{len(pods):,}", pods[0])
        sheet.print(self.console)
        if answer.groups:
            self.line("More about one: licorne why NAME, with the name of an application, ask or pod")
            self.line()

    def unexplained(self, asks: int) -> None:
        """Print how many asks the answer gives no reason for, because its time was over; nothing if there are none."""
        if asks:
            self.line(f"{counted(asks, 'ask')} more, of which few are alike, were not looked at in time: see --limit.")

    def groups(self, title: str, groups: tuple[Group, ...], *, short: bool = False) -> None:
        """Print asks by reason."""
        columns = ("~reason", "asks", "applications", "=the oldest", "=of", "=in")
        drop = () if short else ("in", "applications", "of")
        sheet = Sheet(title, columns[:2] + columns[3:4] if short else columns, drop=drop)
        for group in sheet.first(groups, SHOWN, "reason"):
            more = () if short else (group.application, group.queue)
            counts = (f"{group.asks:,}",) if short else (f"{group.asks:,}", f"{group.applications:,}")
            sheet.add(group.summary, *counts, group.pod or group.oldest, *more)
        sheet.print(self.console)


def print_moment(console: Console, at_s: float) -> None:
    """Print which moment of a recording an answer is about."""
    printed = _Printed(console)
    printed.line(f"At {written(round(at_s * SECOND_NS))} of the recording:")
    printed.line()


def print_notes(console: Console, notes: tuple[Note, ...], *, assumptions: bool = False) -> None:
    """Print what an answer lacks, and how many assumptions it rests on; these themselves if they are asked for."""
    printed = _Printed(console)
    told = [note for note in notes if assumptions or note.kind not in ASSUMED]
    if told:
        printed.line("What the answer rests on:", style="bold")
    for note in told:
        printed.line(f"  {note}")
    if unsaid := len(notes) - len(told):
        printed.line(f"The answer rests on {counted(unsaid, 'assumption')}: --assumptions tells more.")


def _values(changes: Iterable[Change], chain: Chain | None) -> Iterator[str]:
    """Yield the new values of what changes in the configuration on the way of an ask, as they are written there."""
    for change in changes:
        if isinstance(change, QueueMax | MaxApplications) and change.dynamic:
            continue  # its bounds are not in the configuration
        levels: Iterable[QueueLevel | LimitLevel] = () if chain is None else (*chain.queues, *chain.limits)
        for level in levels:
            match change, level:
                case (QueueMax(queue=where), QueueLevel(queue=at)) if where == at:
                    yield f"{at}: max: {_written(level.max or {}, change.more)}"
                case (LimitMax(), LimitLevel()) if _limited(change) == _limited(level):
                    yield f"the limit at {level.queue}: maxresources: {_written(level.max or {}, change.more)}"
                case (MaxApplications(kind="queue", queue=where), QueueLevel(queue=at)) if where == at:
                    yield f"{at}: maxapplications: {level.max_applications + change.more}"
                case (MaxApplications(), LimitLevel()) if _limited(change) == _limited(level):
                    yield f"the limit at {level.queue}: maxapplications: {level.max_applications + change.more}"


def _limited(of: LimitMax | MaxApplications | LimitLevel) -> tuple[str, str, str]:
    return of.kind, of.name, of.queue


def _written(most: Mapping[str, int], more: Mapping[str, int]) -> str:
    """Return a max that is raised as a configuration has it, like `{memory: 136Gi, vcore: 68}`."""
    return f"{{{', '.join(f'{name}: {spoken(name, value + more.get(name, 0))}' for name, value in most.items())}}}"


def _weighed(found: Weighed) -> str:
    """Say what preferences weigh for an ask that runs: in which points its node and the best other one differ."""
    one, two = found.chosen, found.next
    said = f"Preferences: {one.node} has {one.points} points"
    if two is None:
        return f"{said}; no other node takes it."
    differ = [f"{name} {of} and {two.of[name]}" for name, of in one.of.items() if of != two.of[name]]
    best = f"the best of {counted(found.compared - 1, 'other node')}, {two.node}, {two.points}"
    return f"{said}, {best}{': ' if differ else ''}{', '.join(differ)}."


def _when(after_s: float) -> str:
    return "at once" if after_s == 0 else f"after {duration(after_s)}"


def _amounts(amounts: Mapping[str, int]) -> str:
    """Return amounts as words; a type without a unit is named first, since its name may be a plural (`pods: 1`)."""
    return ", ".join(
        amount(name, value) if name in ("vcore", "memory") else f"{name}: {amount(name, value)}"
        for name, value in amounts.items()
    )
