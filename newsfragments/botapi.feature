The Bot API client: every answer, cut answer and missing answer has one meaning; proxies, rate limits and a long poll that confirms nothing before it is stored.
