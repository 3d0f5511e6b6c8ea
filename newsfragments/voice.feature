Answers can be spoken, by programs of `outboundHandlers` or plug-ins, as Pi asks or always; programs can change texts before they are sent.
