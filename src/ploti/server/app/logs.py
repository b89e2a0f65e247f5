"""The server's log: one line an entry on standard error, for people or for programs."""

from __future__ import annotations

import sys

import structlog


def configure_logs() -> None:
    """Log to standard error: in colour to a terminal, else as JSON.

    Tracebacks are without the values of variables, among which are secrets.
    """
    if sys.stderr.isatty():
        plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        finish: list[structlog.types.Processor] = [plain]
    else:
        finish = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *finish,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
