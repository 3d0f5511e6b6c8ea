"""Makes C{twistd pi-telegram} exist.  Nothing of ours is imported until it is used."""

from twisted.application.service import ServiceMaker

pi_telegram = ServiceMaker(
    "pi-telegram",
    "pitelegram.tap",
    "Pi coding agents in Telegram: the daemon.",
    "pi-telegram",
)
