"""What servers over HTTP share, whatever they speak: who calls, what one may take, and how they listen."""
