"""Front doors for the hosts that people run; each has an extra of its own and imports it only when used."""
