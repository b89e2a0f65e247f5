"""What the operator's staff do: declare datasets, check and push states, review what is held."""

from __future__ import annotations

from ploti.client import endpoints, id_endpoints
from ploti.client.account_endpoints import list_audit
from ploti.client.accounts import (
    AsyncKeys,
    AsyncMembers,
    AsyncPlans,
    AsyncWorkspaces,
    Keys,
    Members,
    Plans,
    Workspaces,
)
from ploti.client.methods import Async, Blocking, ListMethod, method
from ploti.client.sides import AsyncSide, BlockingSide


class _AdminDatasets:
    apply = method(endpoints.apply_dataset)
    list = ListMethod(endpoints.list_admin_datasets)
    show = method(endpoints.get_admin_dataset)
    pause = method(endpoints.pause_dataset)
    resume = method(endpoints.resume_dataset)
    remove = method(endpoints.remove_dataset)


class AdminDatasets(_AdminDatasets, Blocking):
    """Datasets with their declarations."""


class AsyncAdminDatasets(_AdminDatasets, Async):
    """Datasets with their declarations."""


class _Holds:
    list = ListMethod(endpoints.list_holds)
    show = method(endpoints.get_hold)
    release = method(endpoints.release_hold)
    discard = method(endpoints.discard_hold)
    accepted = ListMethod(endpoints.list_accepted)
    withdraw = method(endpoints.withdraw_accepted)


class Holds(_Holds, Blocking):
    """Versions kept back for review."""


class AsyncHolds(_Holds, Async):
    """Versions kept back for review."""


class _Ids:
    proposals = ListMethod(id_endpoints.list_proposals)
    show = method(id_endpoints.get_proposal)
    replace = method(id_endpoints.propose_replacement)
    approve = method(id_endpoints.approve_proposal)
    reject = method(id_endpoints.reject_proposal)


class Ids(_Ids, Blocking):
    """Record ids, and proposals to replace them."""


class AsyncIds(_Ids, Async):
    """Record ids, and proposals to replace them."""


class _AdminVersions:
    rebuild = method(endpoints.rebuild_version)
    restore = method(endpoints.restore_version)


class AdminVersions(_AdminVersions, Blocking):
    """Versions released again."""


class AsyncAdminVersions(_AdminVersions, Async):
    """Versions released again."""


class _Admin:
    check = method(endpoints.check_dataset)
    push = method(endpoints.push_state)
    status = method(endpoints.get_status)
    audit = ListMethod(list_audit)


class Admin(_Admin, Blocking):
    """The staff's calls, for a key with the permission `admin`."""

    def __init__(self, side: BlockingSide) -> None:
        super().__init__(side)
        self.datasets = AdminDatasets(side)
        self.holds = Holds(side)
        self.ids = Ids(side)
        self.versions = AdminVersions(side)
        self.workspaces = Workspaces(side)
        self.plans = Plans(side)
        self.members = Members(side)
        self.keys = Keys(side)


class AsyncAdmin(_Admin, Async):
    """The staff's calls, for a key with the permission `admin`."""

    def __init__(self, side: AsyncSide) -> None:
        super().__init__(side)
        self.datasets = AsyncAdminDatasets(side)
        self.holds = AsyncHolds(side)
        self.ids = AsyncIds(side)
        self.versions = AsyncAdminVersions(side)
        self.workspaces = AsyncWorkspaces(side)
        self.plans = AsyncPlans(side)
        self.members = AsyncMembers(side)
        self.keys = AsyncKeys(side)
