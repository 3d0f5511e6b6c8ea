The sandbox's chat page plays voice notes, audio and videos.
