"""A fake of an ArcGIS layer, as the cases describe it."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web
from tests.cases.cases import FOLDER

Feature = dict[str, Any]


class Layer:
    """Answers `PATH?f=json` and `PATH/query`; parameters that it does not honour change nothing."""

    def __init__(self, serve: dict[str, Any]) -> None:
        self.path: str = serve["path"]
        self.identity: str = serve["oid_field"]
        self.cap: int = serve["page_cap"]
        self.honours = set(serve["honours"])
        self.hidden = set(serve.get("hidden_after_slice", ()))
        self.rotate = serve.get("unordered", {}).get("rotate", 0)
        self.asked: list[dict[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.about = (FOLDER / serve["layer_file"]).read_text()
        self.text = (FOLDER / serve["features_file"]).read_text()
        self.raw = serve.get("raw_features", False)
        self.reference: dict[str, Any] | None = None
        fields = serve.get("query_fields_file")
        self.fields = json.loads((FOLDER / fields).read_text()) if fields else None
        self.replaced = serve.get("answers", [])
        self._queries = 0

    @property
    def features(self) -> list[Feature]:
        found: list[Feature] = json.loads(self.text)
        return found

    async def answer(self, request: web.Request) -> web.Response:
        query = dict(request.query)
        self.asked.append(query)
        self.headers.append(dict(request.headers))
        if request.path == self.path:
            return _json(self.about)
        assert request.path == self.path + "/query", request.path
        known = {name: value for name, value in query.items() if name in self.honours}
        if replaced := self._replaced(query):
            return _json((FOLDER / replaced["body_file"]).read_text(), status=replaced["status"])
        visible = [feature for feature in self.features if self._id(feature) not in self.hidden]
        if "returnIdsOnly" in known:
            ids = [self._id(feature) for feature in visible]
            return _json(json.dumps({"objectIdFieldName": self.identity, "objectIds": ids}))
        if "returnCountOnly" in known:
            return _json(json.dumps({"count": len(visible)}))
        return self._rows(known)

    def _rows(self, known: dict[str, str]) -> web.Response:
        self._queries += 1
        found = self.features
        if "objectIds" in known:
            wanted = {int(each) for each in known["objectIds"].split(",")}
            found = [feature for feature in found if self._id(feature) in wanted]
        if self.rotate and "orderByFields" not in known:
            turn = self.rotate * self._queries % len(found)
            found = found[turn:] + found[:turn]
        start = int(known.get("resultOffset", 0))
        end = start + min(int(known.get("resultRecordCount", self.cap)), self.cap)
        page = [feature for feature in found[start:end] if self._id(feature) not in self.hidden]
        answer: dict[str, Any] = {"objectIdFieldName": self.identity}
        if self.fields:
            answer["fields"] = self.fields
        if self.reference:
            answer["spatialReference"] = self.reference
        if end < len(found):
            answer["exceededTransferLimit"] = True
        if self.raw and page == self.features:
            return _json(json.dumps(answer)[:-1] + f', "features": {self.text}}}')
        return _json(json.dumps(answer | {"features": page}))

    def _replaced(self, query: dict[str, str]) -> dict[str, Any] | None:
        has_rows = not query.keys() & {"returnIdsOnly", "returnCountOnly", "outStatistics"}
        for answer in self.replaced:
            if answer.get("when_param") in query:
                return dict(answer)
            first = answer.get("nth_query_with_rows")
            if first and has_rows and self._queries + 1 >= first:
                return dict(answer)
        return None

    def _id(self, feature: Feature) -> int:
        return int(feature["attributes"][self.identity])


def _json(text: str, *, status: int = 200) -> web.Response:
    return web.Response(text=text, content_type="application/json", status=status)
