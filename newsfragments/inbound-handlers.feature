Programs of the operator (`inboundHandlers`) and transcribers read what he sends before Pi does: no shell, limits on time and output, and what fails is told.
