Workers speak to the daemon over a private, authenticated bus that other languages can join.
