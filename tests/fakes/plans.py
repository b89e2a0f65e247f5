"""Plans as tests set them: open to everybody, or not to be read at all."""

from collections.abc import Collection, Mapping

from ploti.model.account import PlanTerms
from ploti.model.ids import WorkspaceId
from ploti.server.membership.rights import PlanReading


class EveryWorkspace(dict[WorkspaceId, PlanTerms]):
    """Whichever workspace is asked for has the same plan."""

    def __init__(self, plan: PlanTerms) -> None:
        super().__init__()
        self.plan = plan

    def get(self, key: WorkspaceId, default: object = None) -> PlanTerms:  # type: ignore[override]
        return self.plan

    def __contains__(self, key: object) -> bool:
        return True


ALL_OPEN = PlanReading(revision=0, plans=EveryWorkspace(PlanTerms()))
"""A reading of plans in a database of which coverage and plans were never changed."""


class FailingPlans:
    """The port's `Plans` before a service that answers only while `plans` is set."""

    def __init__(self, plans: Mapping[WorkspaceId, PlanTerms] | None = None) -> None:
        self.plans = plans
        self.asked = 0

    async def read(self, workspaces: Collection[WorkspaceId]) -> Mapping[WorkspaceId, PlanTerms]:
        self.asked += 1
        return {} if self.plans is None else {each: self.plans[each] for each in workspaces}
