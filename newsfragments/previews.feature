With `assistant.draftPreviews` an answer is shown in its Thread while Pi writes it, as a draft that gives way to the answer; `typing…` is shown in the Thread and in All whatever Pi does.
