"""Methods of the SDK, each made for both sides out of one function with its signature."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Generic, ParamSpec, Self, TypeVar, overload

from ploti.client.calls import Call, Cursor, Item, ListCall
from ploti.client.pages import AsyncPage, Page
from ploti.client.sides import AsyncSide, BlockingSide, Job
from ploti.client.transport import Transport

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])


class Blocking:
    """A group of calls that wait for their answers."""

    def __init__(self, side: BlockingSide) -> None:
        self.side = side


class Async:
    """A group of calls to be awaited."""

    def __init__(self, side: AsyncSide) -> None:
        self.side = side


class _Told:
    """Knows the function that says what a method takes and does, and the method's own name."""

    def __init__(self, told_by: Callable[..., object]) -> None:
        self.told_by = told_by
        self.name = told_by.__name__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def tell(self, function: F) -> F:
        """Give the method its name, docstring and parameters, for `help()`."""
        signature = inspect.signature(self.told_by)
        parameters = [each for name, each in signature.parameters.items() if name != "transport"]
        told = signature.replace(parameters=parameters, return_annotation=signature.empty)
        function.__name__ = function.__qualname__ = self.name
        function.__doc__ = self.told_by.__doc__
        function.__signature__ = told  # type: ignore[attr-defined]
        return function


class Method(_Told, Generic[P, T]):
    """Does a job: waits for it in a `Blocking` group, gives what is to be awaited in an `Async`."""

    def __init__(self, job: Job[P, T], told_by: Callable[..., object] | None = None) -> None:
        super().__init__(told_by or job)
        self.job = job

    @overload
    def __get__(self, group: None, owner: type) -> Self: ...
    @overload
    def __get__(self, group: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, group: Async, owner: type) -> Callable[P, Awaitable[T]]: ...
    def __get__(
        self, group: Blocking | Async | None, owner: type
    ) -> Self | Callable[P, T] | Callable[P, Awaitable[T]]:
        """The method of this group."""
        match group:
            case None:
                return self
            case Blocking():
                return self.tell(self._waiting(group.side))
            case Async():
                return self.tell(self._awaited(group.side))

    def _waiting(self, side: BlockingSide) -> Callable[P, T]:
        def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return side.run(self.job, *args, **kwargs)

        return method

    def _awaited(self, side: AsyncSide) -> Callable[P, Awaitable[T]]:
        async def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return await side.run(self.job, *args, **kwargs)

        return method


class ListMethod(_Told, Generic[P, Item, Cursor]):
    """Gives a `Page` in a `Blocking` group, and an `AsyncPage` to be awaited in an `Async` one."""

    def __init__(self, endpoint: Callable[P, ListCall[Item, Cursor]]) -> None:
        super().__init__(endpoint)
        self.endpoint = endpoint

    @overload
    def __get__(self, group: None, owner: type) -> Self: ...
    @overload
    def __get__(self, group: Blocking, owner: type) -> Callable[P, Page[Item, Cursor]]: ...
    @overload
    def __get__(
        self, group: Async, owner: type
    ) -> Callable[P, Awaitable[AsyncPage[Item, Cursor]]]: ...
    def __get__(
        self, group: Blocking | Async | None, owner: type
    ) -> Self | Callable[P, Page[Item, Cursor]] | Callable[P, Awaitable[AsyncPage[Item, Cursor]]]:
        """The method of this group."""
        match group:
            case None:
                return self
            case Blocking():
                return self.tell(self._waiting(group.side))
            case Async():
                return self.tell(self._awaited(group.side))

    def _waiting(self, side: BlockingSide) -> Callable[P, Page[Item, Cursor]]:
        def method(*args: P.args, **kwargs: P.kwargs) -> Page[Item, Cursor]:
            return Page.first(self.endpoint(*args, **kwargs), side)

        return method

    def _awaited(self, side: AsyncSide) -> Callable[P, Awaitable[AsyncPage[Item, Cursor]]]:
        async def method(*args: P.args, **kwargs: P.kwargs) -> AsyncPage[Item, Cursor]:
            return await AsyncPage.first(self.endpoint(*args, **kwargs), side)

        return method


def method(endpoint: Callable[P, Call[T]]) -> Method[P, T]:
    """The method that sends this call."""

    async def send(transport: Transport, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await transport.send(endpoint(*args, **kwargs))

    return Method(send, told_by=endpoint)
