An answer that is known to be incomplete, or that names its owner wrongly, is held back: it is shown and never sent.
