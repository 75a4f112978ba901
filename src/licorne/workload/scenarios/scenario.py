"""The public class of a scenario, and what `licorne scenario check` says of one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import msgspec

from licorne._files import file_text
from licorne.workload.scenarios.document import STAND_INS, Document, Load, Seed
from licorne.workload.scenarios.outline import Outline, outlined
from licorne.workload.scenarios.plan import Plan, Planner
from licorne.workload.scenarios.stream import ScenarioLines
from licorne.workload.scenarios.values import seconds
from licorne.workload.workload import ASKS_MAX, Mode, OptionError, Workload, explain
from licorne.workload.yaml_files.faults import Problem, YamlFileError
from licorne.workload.yaml_files.reading import Problems, compose_text
from licorne.workload.yaml_files.repair import convert

_T = TypeVar("_T")
_SCENARIO: Final = re.compile(r"(?m)^scenario\s*:")
NO_SCENARIO: Final = (
    "this is no scenario: it begins with `scenario:` and a name; docs/use/scenarios.md says how one looks. Of objects of a "
    "cluster a workload is made by: licorne convert FILE -o WORKLOAD.jsonl"
)


class ScenarioError(YamlFileError):
    """A scenario that is not usable; `problems` has all that is wrong with it, in the order of the text."""


def is_scenario_text(text: str) -> bool:
    """Whether a text seems to be a scenario: it has the key `scenario` at the beginning of a line."""
    return _SCENARIO.search(text) is not None


class Scenario:
    """A cluster, its queues, generated arrivals and a time line of events, from which workloads are made.

    The constructor takes a text in YAML, or the mappings and lists that would stand in one (docs/use/scenarios.md); `read` takes
    a file. Queue configurations that it names are looked for in `folder`, and read at once; `file` is its name in messages. A
    scenario never changes, and can be pickled. Equal scenarios give equal workloads for equal seeds and loads, on every machine
    and version of Python.

    Raises:
        ScenarioError: it is not usable; `problems` has all that is wrong, with lines and columns where there is a text.
    """

    def __init__(
        self, document: Mapping[str, Any] | str, *, folder: Path | str = ".", file: str = "<scenario>"
    ) -> None:
        self._source = (document, str(folder), file)
        if isinstance(document, str):
            made, problems = compose_text(document, file, ScenarioError)
            if not isinstance(made, dict) or "scenario" not in made:
                problems.at(1, 1, NO_SCENARIO)
                problems.refuse()
        else:
            made, problems = dict(document), Problems(file, error=ScenarioError)
        self._plan: Plan = Planner(convert(made, Document, problems, STAND_INS), problems, Path(folder)).plan()

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Return the scenario of a YAML file; files that it names are looked for beside it.

        Raises:
            ScenarioError: it is not usable.
            OSError: the file cannot be read.
        """
        path = Path(path)
        try:
            text = file_text(path)
        except UnicodeDecodeError:
            raise ScenarioError((Problem(str(path), 1, 1, "", "not a text in UTF-8"),)) from None
        return cls(text, folder=path.parent, file=str(path))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it was made of."""
        document, folder, file = self._source
        return partial(Scenario, folder=folder, file=file), (document,)

    @property
    def name(self) -> str:
        """The name, which its results have."""
        return self._plan.document.scenario

    @property
    def seed(self) -> int:
        """The seed that the document says, 1 if it says none."""
        return self._plan.document.seed

    @property
    def load(self) -> float:
        """The load that the document says: the factor of all rates and bursts; 1 if it says none."""
        return self._plan.document.load

    @property
    def length_s(self) -> float:
        """The time in seconds before which everything arrives and happens; pods may run longer."""
        return seconds(self._plan.length_us)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What is probably a mistake, though it can be simulated: labels that no node has, queues that take no application."""
        return self._plan.warnings

    def workload(self, *, seed: int | None = None, load: float | None = None, asks_max: int = ASKS_MAX) -> Workload:
        """Return the workload for a seed and a load, in place of those of the document.

        Its `lines` are made while they are read, so it takes little memory however many there are.

        Raises:
            OptionError: seed or load are out of range: a seed is from 0, a load above 0 and at most 1,000.
            WorkloadError: it has more than `asks_max` asks, which may be found only while the lines are read.
        """
        plan = self._plan
        seed = _within(seed, Seed, self.seed, "seed")
        load = _within(load, Load, self.load, "load")
        document = plan.document
        notes = [f"scenario of seed {seed}" + (f" and load {load:g}" if load != 1 else "")]
        return Workload(
            name=document.scenario,
            mode=Mode.TIMED,
            config=plan.config,
            extra=dict(document.settings),
            lines=ScenarioLines(plan, seed, load, asks_max),
            notes=notes,
            grace_s=seconds(plan.grace_us),
            resubmit=document.resubmit,
            replace=document.replace,
            devices=document.devices if plan.has_devices else "",
            device_policy=document.device_policy,
        )

    def outline(self, *, seed: int | None = None, load: float | None = None, asks_max: int = ASKS_MAX) -> Outline:
        """Return what a scenario comes to: numbers and the demand of each class. It makes all lines once, and keeps none."""
        workload = self.workload(seed=seed, load=load, asks_max=asks_max)
        names = self._plan.document.arrivals
        found = outlined(workload, names, seed=self.seed if seed is None else seed, length_s=self.length_s)
        return msgspec.structs.replace(found, warnings=[str(one) for one in self.warnings])


def _within(value: _T | None, kind: object, otherwise: _T, name: str) -> _T:
    """Return the argument `name`, or `otherwise` if it is None. Raises OptionError unless it is of the type `kind`."""
    if value is None:
        return otherwise
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise OptionError(f"{name}: {value} is not possible: {explain(str(error))[1]}") from None
    return value
