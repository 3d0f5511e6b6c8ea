`pi-telegram service install` runs the daemon as a systemd user unit or a launchd agent, one per profile; workers outlive its restarts.
