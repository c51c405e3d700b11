"""Qt's application, under this program's name."""

from __future__ import annotations

import sys

from PySide6.QtCore import QLoggingCategory
from PySide6.QtWidgets import QApplication

from app import __version__
from app.ui.widgets.work.collector import Collector


def make_application() -> QApplication:
    """Make Qt's application, with its collector."""
    # Where no font has a script, Qt logs every font that it tries: hundreds of lines.
    QLoggingCategory.setFilterRules("qt.text.font.db.info=false")
    application = QApplication(sys.argv[:1])
    application.setApplicationName("Draftscope")
    application.setApplicationVersion(__version__)
    application.setDesktopFileName("draftscope")
    Collector(application)
    return application
