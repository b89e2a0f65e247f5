"""Workspaces, plans, members and keys, as the operator's staff manage them."""

from __future__ import annotations

from ploti.client import account_endpoints as endpoints
from ploti.client.methods import Async, Blocking, ListMethod, method


class _Workspaces:
    create = method(endpoints.create_workspace)
    list = ListMethod(endpoints.list_workspaces)
    show = method(endpoints.get_workspace)
    update = method(endpoints.update_workspace)


class Workspaces(_Workspaces, Blocking):
    """Workspaces with their coverage and plan."""


class AsyncWorkspaces(_Workspaces, Async):
    """Workspaces with their coverage and plan."""


class _Plans:
    create = method(endpoints.create_plan)
    list = ListMethod(endpoints.list_plans)
    show = method(endpoints.get_plan)
    update = method(endpoints.update_plan)


class Plans(_Plans, Blocking):
    """What plans open."""


class AsyncPlans(_Plans, Async):
    """What plans open."""


class _Members:
    add = method(endpoints.add_member)
    list = ListMethod(endpoints.list_members)
    remove = method(endpoints.remove_member)


class Members(_Members, Blocking):
    """People and services in workspaces."""


class AsyncMembers(_Members, Async):
    """People and services in workspaces."""


class _Keys:
    create = method(endpoints.create_key)
    list = ListMethod(endpoints.list_keys)
    revoke = method(endpoints.revoke_key)


class Keys(_Keys, Blocking):
    """API keys of members."""


class AsyncKeys(_Keys, Async):
    """API keys of members."""
