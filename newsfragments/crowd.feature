Thousands of waiting messages, edits and reactions slow nothing down; `/abort`, `/stop` and `/status` go before them.
