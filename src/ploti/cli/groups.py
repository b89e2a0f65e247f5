"""Which commands there are and what each is for; their modules are loaded when they are run."""

from __future__ import annotations

from cyclopts import App

_ROOT = "Public geospatial data as versioned datasets, and tables that follow them."
_ROOT_NEXT = """Begin with:

  ploti serve --data DIR                           a server; it shows two keys
  export PLOTI_API_KEY=ploti_...                   the staff's, then
  ploti admin datasets apply FILE                  declare a dataset
  ploti admin push ID FILE                         fill it
  export PLOTI_API_KEY=ploti_...                   the subscriber's, then
  ploti feeds subscriptions create --dataset ID    follow it

PLOTI_API_URL says where the server is, unless it is http://127.0.0.1:8080.
"""
_FEEDS = "Subscribe to datasets, read what changed, and keep tables in step."
_FEEDS_NEXT = """Begin with:

  ploti feeds datasets list
  ploti feeds subscriptions create --dataset ID
"""
_ADMIN = "Declare datasets, bring in new states, and review what is held."
_ADMIN_NEXT = """These need the staff's key. Begin with:

  ploti admin datasets apply FILE
  ploti admin push ID FILE
"""


def add_groups(app: App) -> None:
    """Add every command to the root."""
    app.help = _ROOT
    app.help_epilogue = _ROOT_NEXT
    app.command("ploti.cli.serve:serve", name="serve", help="Serve feeds from a folder.")
    app.command(_feeds())
    app.command(_admin())


def _feeds() -> App:
    feeds = App(name="feeds", help=_FEEDS, help_epilogue=_FEEDS_NEXT)
    feeds.command("ploti.cli.datasets:app", name="datasets", help="The catalogue and its files.")
    feeds.command(
        "ploti.cli.subscriptions:app",
        name="subscriptions",
        help="Standing choices of datasets, and their logs of events.",
    )
    feeds.command("ploti.cli.sync:sync", name="sync", help="Keep tables in step.")
    feeds.command("ploti.cli.sync:status", name="status", help="How far behind each dataset is.")
    feeds.command("ploti.cli.sync:verify", name="verify", help="Prove that tables are right.")
    return feeds


def _admin() -> App:
    admin = App(name="admin", help=_ADMIN, help_epilogue=_ADMIN_NEXT)
    admin.command("ploti.cli.declare:app", name="datasets", help="Datasets and declarations.")
    admin.command("ploti.cli.states:check", name="check", help="Check a dataset's source now.")
    admin.command("ploti.cli.states:push", name="push", help="Upload a dataset's new state.")
    admin.command("ploti.cli.holds:app", name="holds", help="Versions kept back for review.")
    return admin
