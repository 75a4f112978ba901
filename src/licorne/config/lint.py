from __future__ import annotations
def lint(config, roots, quantities, notes): pass
