"""The daemon as one service: transport, leader, supervisor and control socket, and how it ends."""
