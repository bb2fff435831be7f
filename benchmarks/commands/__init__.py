"""How long single commands hold the server."""
