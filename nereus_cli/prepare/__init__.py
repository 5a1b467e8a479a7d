"""FROM WISH TO PREPARED COMMAND. The command line, batches, prepared files and Python programs all come
through here, so that the same wish gives the same command everywhere. Nothing is read or written here."""
