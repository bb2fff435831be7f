"""PostgreSQL: the authoritative rows behind the mirror, and what is built on rows alone.

server      the embedded PostgreSQL            session     scripts of statements, sync and async
pool        connections kept for reuse         translate   errors of the client into omoide's
migrate     numbered SQL files, applied once   script      what a script is made of
threads     messages of sessions
"""
