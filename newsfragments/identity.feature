Each worker has a public key that stays over crashes, restarts and sessions; it comes from an installation key that fails closed, and only the process that was made for a worker can be it.
Two profiles of one bot do not poll against each other: the second start ends with 4 and names the first profile.
