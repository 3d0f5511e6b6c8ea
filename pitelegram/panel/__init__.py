"""The operator's panel: screens as data and the callbacks behind their buttons."""
