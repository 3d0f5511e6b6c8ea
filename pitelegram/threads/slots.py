"""Letters and names of bindings."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from string import ascii_uppercase

from pitelegram.errors import Refusal

PALETTE: dict[str, tuple[str, ...]] = {
    names.split()[0][0]: tuple(names.split())
    for names in (
        "Atlas Aster Aurora Anchor Ashen",
        "Beacon Briar Boreal Birch Bison",
        "Cedar Comet Cipher Coral Cinder",
        "Delta Dawn Drift Dune Dagger",
        "Ember Echo Eagle Eden Elder",
        "Falcon Fjord Flint Forest Fable",
        "Grove Glade Glyph Garnet Gale",
        "Harbor Hawk Hazel Helix Haven",
        "Iris Ivory Iron Isle Idea",
        "Jade Juno Jolt Jewel Jasper",
        "Kite Karma Kernel Kodiak Kelp",
        "Lumen Laurel Lynx Lotus Lagoon",
        "Maple Meteor Meadow Marble Moss",
        "Nimbus Nova Nectar North Noble",
        "Orion Onyx Opal Orbit Olive",
        "Pine Pulse Praxis Pebble Prism",
        "Quartz Quill Quasar Quest Quiver",
        "River Raven Rune Reef Ridge",
        "Spruce Solar Signal Stone Sable",
        "Timber Talon Terra Torch Tide",
        "Umber Unity Ursa Uplink Ulmus",
        "Violet Vector Vista Vale Vortex",
        "Willow Warden Wave Winter Wisp",
        "Xenon Xylem Xavier Xylo Xerus",
        "Yarrow Yonder Yukon Yale Yogi",
        "Zenith Zephyr Zircon Zebra Zion",
    )
}
"""Five names a letter."""


def first_free(taken: Collection[str]) -> str:
    """Return the first letter that no binding has.

    @raise Refusal: C{no-slot} when all 26 are taken.
    """
    for letter in ascii_uppercase:
        if letter not in taken:
            return letter
    raise Refusal("no-slot", "all 26 letters are taken; forget a worker that is no longer needed")


def pick_name(slot: str, at_ms: int, taken: Collection[str]) -> str:
    """Return a name that no binding has, from the slot's palette or else another letter's.

    @param at_ms: the time decides where in the palette the search begins.
    """
    begin = fnv1a(str(at_ms).encode()) % 5
    for name in _candidates(slot, begin):
        if name not in taken:
            return name
    raise Refusal("no-slot", "all names are taken; forget a worker that is no longer needed")


def _candidates(slot: str, begin: int) -> Iterator[str]:
    at = ascii_uppercase.index(slot)
    for letter in ascii_uppercase[at:] + ascii_uppercase[:at]:
        names = PALETTE[letter]
        yield from names[begin:] + names[:begin]


def fnv1a(data: bytes) -> int:
    """Return the 32-bit FNV-1a hash."""
    value = 0x811C9DC5
    for byte in data:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value
