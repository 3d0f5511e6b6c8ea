Every start makes all files private again or says what is unsafe; looking at them changes nothing; a group may be let to the control socket.
