"""The leader of a bot profile: L{LeaderService}, composed of the parts below it."""

from pitelegram.leader.service import LeaderService

__all__ = ["LeaderService"]
