"""Where entries are kept: the protocol every journal keeps, and the journals."""
