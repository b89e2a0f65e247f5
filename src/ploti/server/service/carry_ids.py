"""Part of a build: an older version's records under the ids that they were given since (S-23)."""

from __future__ import annotations

import msgspec

from ploti.server.build import id_map
from ploti.server.build.candidate import Base
from ploti.server.ports.building import Engine


def carry_ids(engine: Engine, content: Base, maps: list[str], *, name: str) -> Base:
    """A version under the ids to which later id maps lead, in a snapshot of this name."""
    if not maps:
        return content
    engine.run(id_map.chain_sql(maps))
    written = engine.write_again(id_map.renamed_sql(content), base=content, name=name)
    return msgspec.structs.replace(
        content,
        snapshot=f"{engine.folder}/{written.snapshot.name}",
        buckets=written.buckets.to_wire(),
    )
