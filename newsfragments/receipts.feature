A control command is done once per request id, whatever is killed: a daemon that starts asks the worker what became of the ones before.
