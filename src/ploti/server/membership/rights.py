"""What a workspace may have at all: the places of its coverage, and what its plan opens there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ploti.model.account import PlanTerms
from ploti.model.ids import DatasetId, WorkspaceId
from ploti.model.wire import Value


class Filing(Value, kw_only=True):
    """Where a dataset is filed, and whether it is delivered at all."""

    dataset_id: DatasetId
    place: str
    topic: str
    deliverable: bool


class Rights(Value, kw_only=True):
    """A workspace's coverage (None: everything) and its plan (None: it cannot be read now)."""

    coverage: list[str] | None
    plan: PlanTerms | None

    def covers(self, filing: Filing) -> bool:
        """Whether the dataset lies in the coverage."""
        return self.coverage is None or lies_in(self.coverage, filing.place)

    def opens(self, filing: Filing) -> bool | None:
        """Whether the plan opens the dataset; None where it cannot be read."""
        return None if self.plan is None else opens(self.plan, filing)


EVERYTHING = Rights(coverage=None, plan=PlanTerms())
"""The rights of a workspace that may have everything."""


class PlanReading(Value, kw_only=True):
    """Plans by workspace, as they were read while coverage and plans stood at `revision`.

    Who only looks needs no revision (-1). A workspace that is missing has a plan that could not be
    read.
    """

    revision: int
    plans: Mapping[WorkspaceId, PlanTerms]

    def rights(self, workspace_id: WorkspaceId, coverage: list[str] | None) -> Rights:
        """The rights of a workspace with this coverage."""
        return Rights(coverage=coverage, plan=self.plans.get(workspace_id))


NOT_READ = PlanReading(revision=-1, plans={})
"""No plan was asked for."""


def opens(plan: PlanTerms, filing: Filing) -> bool:
    """Whether a plan opens a dataset: one of its topics takes it in, or it is named."""
    if plan.topics is None and plan.datasets is None:
        return True
    named = plan.datasets is not None and filing.dataset_id in plan.datasets
    return named or (plan.topics is not None and lies_in(plan.topics, filing.topic))


def lies_in(listed: Sequence[str], path: str) -> bool:
    """Whether one of the listed paths takes in the path."""
    return any(takes_in(each, path) for each in listed)


def takes_in(listed: str, path: str) -> bool:
    """Whether a listed path takes in another: itself, and all below it."""
    return path == listed or path.startswith(f"{listed}/")
