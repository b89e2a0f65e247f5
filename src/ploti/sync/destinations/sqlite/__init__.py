"""SQLite files and GeoPackages as destinations: file, session, tables, and either's layout."""

from ploti.sync.destinations.sqlite.file import SQLite as SQLite
from ploti.sync.destinations.sqlite.geopackage import GeoPackage as GeoPackage
