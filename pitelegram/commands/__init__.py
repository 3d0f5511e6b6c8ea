"""What the commands of C{pi-telegram} do; each module is imported only when it is used."""
