Pi can put buttons below an answer with a hidden comment (`<!-- telegram_buttons [[{Yes}{No}]] -->`); a press becomes its next prompt, once, also after restarts.
