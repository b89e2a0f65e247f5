"""Fakes of Socrata and of a CKAN datastore, as the cases describe them."""

from __future__ import annotations

from typing import Any

from aiohttp import web

Rows = list[dict[str, Any]]


class Soda:
    """Rows by $limit and $offset; without $order they come rotated anew at each request."""

    def __init__(self, rows: Rows, serve: dict[str, Any]) -> None:
        self.rows = [{":id": f"row-{n:06d}", **row} for n, row in enumerate(rows)]
        self.default, self.most = serve["default_limit"], serve["max_limit"]
        self.page_size: int | None = None
        self.rotate = serve.get("unordered", {}).get("rotate", 0)
        self.headers: dict[str, str] = {}
        self.asked = 0

    async def answer(self, request: web.Request) -> web.Response:
        query = request.query
        if query.get("$select") == "count(*)":
            return web.json_response([{"count": str(len(self.rows))}])
        rows = self.rows
        if query.get("$order") != ":id":
            self.asked += 1
            turn = self.rotate * self.asked % len(rows)
            rows = rows[turn:] + rows[:turn]
        start = int(query.get("$offset", 0))
        limit = min(int(query.get("$limit", self.default)), self.page_size or self.most)
        return web.json_response(rows[start : start + limit], headers=self.headers)


class Datastore:
    """Rows by limit and offset; a limit over the server's own is lowered without a word."""

    def __init__(self, rows: Rows, serve: dict[str, Any]) -> None:
        self.rows, self.most = rows, serve["rows_max"]
        self.repeats = False
        self.fields: Rows = []

    async def answer(self, request: web.Request) -> web.Response:
        query = request.query
        start, limit = int(query.get("offset", 0)), min(int(query.get("limit", 100)), self.most)
        if self.repeats:
            start = 0
        found = sorted(self.rows, key=lambda row: row["_id"])[start : start + limit]
        result = {"records": found, "total": len(self.rows), "fields": self.fields}
        return web.json_response({"success": True, "result": result})
