What Pi says before its answer comes at once, silently and once; runs that nobody in the chat asked for are shown where `assistant.proactivePush` is on, and only there.
