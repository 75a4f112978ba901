"""The example of a leaf within its guarantee, without the rule that protects such a leaf; prints the victims.

Run as a program, in the interpreted core, where the rule can be replaced.
"""

from __future__ import annotations

import sys
from unittest.mock import patch

from licorne.core.preemption.planned_usage import PlannedUsage
from preemption.test_examples import DELAY, beside_its_guarantee, victims

if __name__ == "__main__":
    with patch.object(PlannedUsage, "protected", lambda *_arguments: False):
        sys.stdout.write(" ".join(victims(beside_its_guarantee(5), after=DELAY)))
