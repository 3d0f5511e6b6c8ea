"""The Bot API: client, classifier of answers, rate limits, files, long poll."""
