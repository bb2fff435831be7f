-- Which memories went by themselves, when and why; never what they said. `erased_at` is empty until it is done.

CREATE TABLE popagent_ledger (
    entry bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id text NOT NULL,
    partition text NOT NULL,
    memory_id text NOT NULL,
    reason text NOT NULL,
    created_at timestamptz NOT NULL,
    decided_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    erased_at timestamptz
);
CREATE INDEX popagent_ledger_partition ON popagent_ledger (partition, entry);
CREATE INDEX popagent_ledger_open ON popagent_ledger (entry) WHERE erased_at IS NULL;
