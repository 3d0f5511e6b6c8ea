With `assistant.footer` an answer ends with the tokens and the cost of its run.
