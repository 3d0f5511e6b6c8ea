A small file that unpacks to a huge picture is given to Pi as a path: it kept Pi from answering for half a minute.
