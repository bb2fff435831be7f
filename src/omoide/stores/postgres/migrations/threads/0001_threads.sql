-- What was said, message by message. A thread's row numbers its messages: appends to one thread take turns.
-- A message is JSON text, kept as it is; nothing here refers to long-term memories, nor they to it.

CREATE TABLE popagent_threads (
    resource_id text NOT NULL,
    session_id text NOT NULL,
    messages bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (resource_id, session_id)
);
CREATE INDEX popagent_threads_recent ON popagent_threads (resource_id, updated_at DESC, session_id);

CREATE TABLE popagent_messages (
    resource_id text NOT NULL,
    session_id text NOT NULL,
    place bigint NOT NULL,
    operation_id text,
    message text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (resource_id, session_id, place),
    FOREIGN KEY (resource_id, session_id) REFERENCES popagent_threads ON DELETE CASCADE
);
CREATE INDEX popagent_messages_operation ON popagent_messages (resource_id, session_id, operation_id)
    WHERE operation_id IS NOT NULL;
