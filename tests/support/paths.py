"""Location of the checkout."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
