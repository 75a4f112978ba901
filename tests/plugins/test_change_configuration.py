"""A configuration that the scheduler's side changes, and the resource manager saves.

Source: *Scheduler Interface Spec*, "Scheduler plugin".
"""

from __future__ import annotations

import pytest

from core.bench import Bench, config
from licorne import ConfigurationError, ResourceManagerCallback
from licorne.si import first

OLD, NEW = config("a"), config("a", "b")


class Saves(ResourceManagerCallback):
    def __init__(self, *answers: first.UpdateConfigurationResponse | Exception) -> None:
        self.saved: list[str] = []
        self._answers = list(answers)

    def update_configuration(self, request: first.UpdateConfigurationRequest) -> first.UpdateConfigurationResponse:
        self.saved.append(request.configs)
        answer = self._answers.pop(0) if self._answers else first.UpdateConfigurationResponse(success=True)
        if isinstance(answer, Exception):
            raise answer
        return answer


def bench(callback: ResourceManagerCallback | None) -> Bench:
    b = Bench(OLD, first_interface=True)
    b.register(callback)
    return b


@pytest.mark.parametrize("saves", [True, False])
def test_the_answer_holds_the_old_configuration(saves: bool) -> None:
    callback = Saves() if saves else None
    b = bench(callback)
    answer = b.api.change_configuration("rm", NEW)
    assert answer == first.UpdateConfigurationResponse(success=True, old_config=OLD)
    assert b.queues() == ["root", "root.a", "root.b"]
    assert callback is None or callback.saved == [NEW]
    assert b.api.change_configuration("rm", OLD).old_config == NEW


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (first.UpdateConfigurationResponse(success=False, reason="the disk is full"), "the disk is full"),
        (first.UpdateConfigurationResponse(success=False), "the resource manager did not save it"),
        (OSError("gone"), "the resource manager failed to save it: OSError: gone"),
    ],
)
def test_a_configuration_that_is_not_saved_is_not_applied(
    answer: first.UpdateConfigurationResponse | Exception, reason: str
) -> None:
    b = bench(Saves(answer))
    with pytest.raises(ConfigurationError) as refused:
        b.api.change_configuration("rm", NEW)
    assert str(refused.value) == f"update of configuration failed: {reason}"
    assert b.queues() == ["root", "root.a"]
    assert b.api.change_configuration("rm", NEW).old_config == OLD


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "partitions: {}",
        config("a", "a"),
        config("a resources: {max: {vcore: -1}}"),
        config("b", more="placementrules: [{name: unknown}]"),
    ],
)
def test_a_wrong_text_is_refused_before_it_is_saved(text: str) -> None:
    callback = Saves()
    b = bench(callback)
    with pytest.raises(ConfigurationError, match="update of configuration failed: "):
        b.api.change_configuration("rm", text)
    assert (callback.saved, b.queues()) == ([], ["root", "root.a"])


def test_an_unknown_resource_manager() -> None:
    b = bench(None)
    with pytest.raises(ConfigurationError, match="not registered"):
        b.api.change_configuration("other", NEW)


def test_the_plugin_must_not_call_back() -> None:
    class CallsBack(Saves):
        def update_configuration(self, request: first.UpdateConfigurationRequest) -> first.UpdateConfigurationResponse:
            b.api.schedule()
            return super().update_configuration(request)

    b = bench(CallsBack())
    with pytest.raises(ConfigurationError, match="called from within a callback"):
        b.api.change_configuration("rm", NEW)
    b.run()
