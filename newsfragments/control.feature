Command line, control socket and `twistd` plugin: one daemon per bot, workers by command, each request id done at most once, `doctor` that names the cure.
