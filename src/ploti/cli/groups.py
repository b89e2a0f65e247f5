"""Which commands there are and what each is for; their modules are loaded when they are run."""

from __future__ import annotations

from importlib.metadata import version

from cyclopts import App

_ROOT = "Public geospatial data as versioned datasets, and tables that follow them."
_ROOT_NEXT = """Begin with:

  ploti demo                                       the whole of it, in a minute
  ploti serve --data DIR                           a server; it shows two keys
  export PLOTI_API_KEY=ploti_...                   the staff's, then
  ploti admin datasets apply FILE                  declare a dataset
  ploti admin push ID FILE                         fill it; again when changed
  export PLOTI_API_KEY=ploti_...                   the subscriber's, then
  ploti feeds subscriptions create --dataset ID    subscribe; it shows an id
  ploti feeds sync SUB --to duckdb:copy.duckdb     copy it, keep it in step
  ploti feeds verify SUB --to duckdb:copy.duckdb   prove that it is equal

PLOTI_API_URL says where the server is, unless it is http://127.0.0.1:8080. To keep more than one \
server with its key: ploti config set NAME --url URL; then --profile NAME with any command.
"""
_DEMO_NEXT = "Next: ploti serve --data DIR"
_SERVE_NEXT = """Next, in a second terminal, with the first of the two keys:

  export PLOTI_API_KEY=ploti_...
  ploti admin datasets apply FILE
  ploti admin push ID FILE
"""
_BACKUP_NEXT = """To restore:

  mkdir -m 700 NEW; tar -xf FILE -C NEW
  ploti admin recover --data NEW
  ploti serve --data NEW
"""
_SERVER_NEXT = "Next: ploti serve --data DIR, or ploti doctor --data DIR to see whether all is well"
_COMPLETION_NEXT = (
    "For good: ploti completion bash --install; for this shell: source <(ploti completion bash)"
)
_SYNC_NEXT = """Next, to prove it, and to see how far behind it is:

  ploti feeds verify SUB --to DESTINATION
  ploti feeds status SUB --to DESTINATION
"""
_FEEDS = "Subscribe to datasets, read what changed, and keep tables in step."
_FEEDS_NEXT = """Begin with:

  ploti feeds datasets list
  ploti feeds subscriptions create --dataset ID    it shows an id, SUB
  ploti feeds sync SUB --to duckdb:copy.duckdb
"""
_ADMIN = "Declare datasets, bring in new states, and review what is held."
_ADMIN_NEXT = """These need the staff's key. Begin with:

  ploti admin datasets apply FILE
  ploti admin push ID FILE
"""

_SERVE = """Serve feeds from a folder until Ctrl-C or SIGTERM.

A new folder is set up with a workspace and two keys. A setting that is not given as a flag is \
read from the variable of the same name: --max-waits from PLOTI_MAX_WAITS."""
_DEMO = """Play eight real versions of the world's airports through a server into a database.

It takes about a minute, tells each step, and stops at the first number that is not the true one. \
Nothing leaves this machine."""
_BACKUP = """Write a consistent copy of all that a server keeps into one archive, while it runs.

The archive has the database, as SQLite also where it is PostgreSQL, every file that it knows of, \
and the secret in the folder. To restore, unpack it into a new folder, and run \
ploti admin recover on that."""
_MIGRATE = "Bring the database to this release's form, as a start of the server does too."
_DOCTOR = """Say what is wrong with a set-up, and what to do about it; nothing is changed.

The variables are those that the server is to run with. The status is 1 where it would not serve \
as it should."""
_RECOVER = """Make a restored server's data ready, the last step of a restore.

Numbers given since the backup are not known any more: all are raised over them, so that none is \
given twice. Subscribers are told that their cursors have expired, and load once. With \
PLOTI_DATABASE_URL an empty database gets the rows of the unpacked archive first."""
_SYNC = """Bring tables of your own in step with a subscription, once or for as long as it runs.

Each dataset becomes a table named after its id without ds_, with its records' columns and \
_ploti_record_id. What is held stands in the schema _ploti, or in tables with the prefix _ploti_. \
Stopped at any moment, it goes on where it was."""
_CONFIG = "Servers by name, each with its key, for the commands and import ploti."
_COMPLETION = "Have the shell complete commands and flags."
_DIFF = "Show which records one version has that another has not, or has otherwise."
_STATUS = "Say how far behind each dataset of a destination is, and why."
_VERIFY = "Prove that each table equals the version that it holds, by its content digest."
_WORKSPACES = "The accounts that own keys, subscriptions and webhooks."
_PLANS = "Named lists of the topics and datasets that are open inside a workspace's coverage."
_MEMBERS = "The people and services in workspaces."
_CHECK = "Check a dataset's source now, and wait for the outcome."
_ADMIN_STATUS = "Say how the server does: queues, failing sources, builds under way, sizes."
_PUSH = """Upload a file as the source's new state, and wait for the outcome.

It is released, held for review (both are exit status 0), unchanged, or it failed."""


def make_app() -> App:
    """The root, with every command; it gives back what a command returns, and raises its error."""
    app = App(
        name="ploti",
        help=_ROOT,
        help_epilogue=_ROOT_NEXT,
        help_format="plaintext",
        version=lambda: version("ploti"),
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    app.command("ploti.cli.demo:demo", name="demo", help=_DEMO, help_epilogue=_DEMO_NEXT)
    app.command("ploti.cli.serve:serve", name="serve", help=_SERVE, help_epilogue=_SERVE_NEXT)
    app.command("ploti.cli.offline:backup", name="backup", help=_BACKUP, help_epilogue=_BACKUP_NEXT)
    app.command(
        "ploti.cli.offline:migrate", name="migrate", help=_MIGRATE, help_epilogue=_SERVER_NEXT
    )
    app.command("ploti.cli.offline:doctor", name="doctor", help=_DOCTOR, help_epilogue=_SERVER_NEXT)
    app.command(_feeds())
    app.command(
        "ploti.cli.webhooks:app",
        name="webhooks",
        help="Addresses that a subscription's events are sent to.",
    )
    app.command(_admin())
    app.command("ploti.cli.config:app", name="config", help=_CONFIG)
    app.command(
        "ploti.cli.completion:completion",
        name="completion",
        help=_COMPLETION,
        help_epilogue=_COMPLETION_NEXT,
    )
    return app


def _feeds() -> App:
    feeds = App(name="feeds", help=_FEEDS, help_epilogue=_FEEDS_NEXT)
    feeds.command("ploti.cli.datasets:app", name="datasets", help="The catalogue and its files.")
    feeds.command(
        "ploti.cli.subscriptions:app",
        name="subscriptions",
        help="Standing choices of datasets, and their logs of events.",
    )
    feeds.command("ploti.cli.diff:diff", name="diff", help=_DIFF)
    feeds.command("ploti.cli.sync:sync", name="sync", help=_SYNC, help_epilogue=_SYNC_NEXT)
    feeds.command("ploti.cli.sync:status", name="status", help=_STATUS)
    feeds.command("ploti.cli.sync:verify", name="verify", help=_VERIFY)
    return feeds


def _admin() -> App:
    admin = App(name="admin", help=_ADMIN, help_epilogue=_ADMIN_NEXT)
    admin.command("ploti.cli.declare:app", name="datasets", help="Datasets and declarations.")
    admin.command("ploti.cli.states:check", name="check", help=_CHECK)
    admin.command("ploti.cli.states:push", name="push", help=_PUSH)
    admin.command("ploti.cli.status:status", name="status", help=_ADMIN_STATUS)
    admin.command("ploti.cli.again:app", name="versions", help="Versions released again.")
    admin.command(
        "ploti.cli.offline:recover", name="recover", help=_RECOVER, help_epilogue=_SERVER_NEXT
    )
    admin.command("ploti.cli.holds:app", name="holds", help="Versions kept back for review.")
    admin.command(
        "ploti.cli.ids:app", name="ids", help="Record ids, and proposals to replace them."
    )
    admin.command("ploti.cli.workspaces:app", name="workspaces", help=_WORKSPACES)
    admin.command("ploti.cli.plans:app", name="plans", help=_PLANS)
    admin.command("ploti.cli.members:app", name="members", help=_MEMBERS)
    admin.command("ploti.cli.keys:app", name="keys", help="Members' API keys.")
    admin.command("ploti.cli.audit:audit", name="audit", help="List what staff did, newest first.")
    return admin
