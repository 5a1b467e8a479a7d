"""WHAT THE OWNER DOES NEXT. Decides, performs nothing: the daemon carries out each turn in the order it gives."""
