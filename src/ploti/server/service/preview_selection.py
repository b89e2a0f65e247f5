"""What a selection would deliver, before there is a subscription with it."""

from __future__ import annotations

from ploti.model.subscription import Excluded, Obstacle, Preview, Selection
from ploti.server.membership.principal import Reader
from ploti.server.membership.selection import checked, matches, obstacle
from ploti.server.ports.store import Transaction
from ploti.server.service.read_plans import rights_of


def preview_selection(tx: Transaction, reader: Reader, selection: Selection) -> Preview:
    """The datasets that would join, and why others that match would not; raises InvalidInput."""
    wanted = checked(selection)
    (rights,) = rights_of(tx, reader.plans, reader.workspaces).values()
    preview = Preview(datasets=[], excluded=[], unknown=[])
    filings = tx.datasets.filings()
    for filing in sorted(filings, key=lambda filing: filing.dataset_id):
        found = obstacle(wanted, filing, rights)
        if found is None:
            preview.datasets.append(filing.dataset_id)
        elif found is not Obstacle.NOT_MATCHED and matches(wanted, filing):
            preview.excluded.append(Excluded(dataset_id=filing.dataset_id, reason=found))
    known = {filing.dataset_id for filing in filings}
    preview.unknown.extend(each for each in wanted.datasets if each not in known)
    return preview
