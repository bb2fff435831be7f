-- What the mirror keeps beside the tables of the models. `partition` is the partition's values, percent-encoded and joined
-- by `/`, after the namespace and `:` where that is not the default one. No column holds what a memory says.

CREATE TABLE omoide_mirrors (
    model text PRIMARY KEY,
    table_name text NOT NULL UNIQUE
);

-- Whoever writes to a partition holds its row here until the commit: `seq` is therefore the order of commits. It starts at
-- the clock, in microseconds, so that a partition that was dropped never counts again what it counted before.
CREATE TABLE omoide_partitions (
    model text NOT NULL,
    partition text NOT NULL,
    seq bigint NOT NULL,
    begun boolean NOT NULL DEFAULT false,
    records bigint NOT NULL DEFAULT 0,
    next_row bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (model, partition)
) WITH (fillfactor = 50);

-- Rebuilds under way. While there is one, the outbox of its partition forgets nothing. A table of its own, so that nobody
-- who rebuilds has to queue for the row that writers hold.
CREATE TABLE omoide_rebuilds (
    model text NOT NULL,
    partition text NOT NULL,
    token text NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (model, partition)
);

-- Commits that the store may not show yet: which records, edges and counters they changed, not to what.
CREATE TABLE omoide_outbox (
    model text NOT NULL,
    partition text NOT NULL,
    seq bigint NOT NULL,
    op text NOT NULL,
    begins boolean NOT NULL DEFAULT false,
    ids text[] NOT NULL DEFAULT '{}',
    linked text[] NOT NULL DEFAULT '{}',
    counters text[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (model, partition, seq)
);

CREATE TABLE omoide_counters (
    model text NOT NULL,
    partition text NOT NULL,
    name text NOT NULL,
    value bigint NOT NULL,
    PRIMARY KEY (model, partition, name)
);

-- Undirected: each edge once, `first` below `second` in byte order.
CREATE TABLE omoide_edges (
    model text NOT NULL,
    partition text NOT NULL,
    first text COLLATE "C" NOT NULL,
    second text COLLATE "C" NOT NULL,
    weight real NOT NULL,
    PRIMARY KEY (model, partition, first, second)
);
CREATE INDEX omoide_edges_second ON omoide_edges (model, partition, second);

-- Which records name an entity, by a digest of the name.
CREATE TABLE omoide_entities (
    model text NOT NULL,
    partition text NOT NULL,
    name bytea NOT NULL,
    row bigint NOT NULL,
    id text NOT NULL,
    PRIMARY KEY (model, partition, name, row)
);
CREATE INDEX omoide_entities_id ON omoide_entities (model, partition, id);

-- Outcomes that records of a turn took: 1 an outcome, 2 an echo, 3 both.
CREATE TABLE omoide_told (
    model text NOT NULL,
    partition text NOT NULL,
    turn text NOT NULL,
    id text NOT NULL,
    told smallint NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (model, partition, turn, id)
);
CREATE INDEX omoide_told_until ON omoide_told (until);
