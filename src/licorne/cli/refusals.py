"""What the scheduler, the simulator and the generators refuse, as errors of a command: one rule for all commands.

What the command line itself asked for, an option or a setting, is wrong usage; all else, such as a mistake in a workload,
has no exit status of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from licorne import RegistrationError, SettingsError
from licorne.cli.common import CommandError, UsageError
from licorne.sim.policies.interface import PolicyError
from licorne.workload.workload import OptionError, WorkloadError


@contextmanager
def refusals() -> Iterator[None]:
    """Raise a refusal within the `with` block as an error of the command.

    Raises:
        UsageError: an option or a setting was refused.
        CommandError: a workload, a policy or a registration was refused.
    """
    try:
        yield
    except SettingsError as error:
        raise UsageError(f"--setting {error}") from None
    except OptionError as error:
        raise UsageError(str(error)) from None
    except (PolicyError, RegistrationError, WorkloadError) as error:
        raise CommandError(str(error)) from None
