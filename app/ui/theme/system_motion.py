"""Whether the desktop asks for less motion. Qt does not say; on Linux the settings portal does."""

from __future__ import annotations

from PySide6.QtCore import SLOT, QObject, Slot
from PySide6.QtDBus import QDBusConnection, QDBusMessage, QDBusPendingCallWatcher, QDBusVariant

from app.ui.theme.theme import Theme

_PORTAL = (
    "org.freedesktop.portal.Desktop",
    "/org/freedesktop/portal/desktop",
    "org.freedesktop.portal.Settings",
)
_LESS = {
    ("org.freedesktop.appearance", "reduced-motion"): 1,
    ("org.gnome.desktop.interface", "enable-animations"): False,  # of GNOME before the portal had a word
}
"""The value of each of the portal's settings that asks for less motion."""


class SystemMotion(QObject):
    """Passes the portal's setting to a theme, now and whenever it changes. Does nothing on a desktop without
    a portal."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._theme = theme
        self._asking: dict[tuple[str, str], bool] = {}  # of each setting that was told
        bus = QDBusConnection.sessionBus()
        if not bus.isConnected():
            return
        bus.connect(*_PORTAL, "SettingChanged", self, SLOT("hear(QDBusMessage)"))  # type: ignore[call-overload] # annotated as bytes
        for group, name in _LESS:
            call = QDBusMessage.createMethodCall(*_PORTAL, "ReadOne")
            call.setArguments([group, name])
            asked = QDBusPendingCallWatcher(bus.asyncCall(call), self)
            asked.finished.connect(lambda answered, group=group, name=name: self._read(group, name, answered))

    @Slot(QDBusMessage)
    def hear(self, message: QDBusMessage) -> None:
        """Take a setting that was changed."""
        self._take(*message.arguments())

    def _read(self, group: str, name: str, answered: QDBusPendingCallWatcher) -> None:
        if not answered.isError():  # else the portal does not have this setting
            self._take(group, name, *answered.reply().arguments())
        answered.deleteLater()

    def _take(self, group: str, name: str, value: QDBusVariant) -> None:
        if (group, name) in _LESS:
            self._asking[group, name] = value.variant() == _LESS[group, name]
            self._theme.set_system_motion(less=any(self._asking.values()))
