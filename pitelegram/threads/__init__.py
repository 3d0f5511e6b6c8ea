"""Threads of the private chat: slots, names, titles, bindings, provisioning."""
