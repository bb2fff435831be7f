-- Rank the rows of one partition by a question, in one statement: the same formula as the index in Redis,
-- over a generated tsvector instead of packed postings. See core/arms/formula.py for the arms.
--
--   wanted  (term, lexeme)            lexemes a term may have been indexed as
--   missing (term, word)              words that no row has, for which similar ones stand in
--   hit     (id, term, weight, seen)  BM25 weight of the term in the row, without idf; whether it is valid then
--   lent    (id, term, part)          own weight x idf, and what neighbours in the session lend
--   said    (id, text)                sum over terms of the greatest part
--   dated   (id, fit)                 rows of a date that the question names
--
-- tf is read back from ts_rank of one lexeme, which is .1 / 1.644934 x sum of 1 / j^2 for j to tf.
-- Cost: the rows that match, the rows of their sessions, and a count of the partition.

WITH wanted AS MATERIALIZED (
    SELECT * FROM unnest(%(term)s::int[], %(lexeme)s::text[]) AS w (term, lexeme)
),
mine AS MATERIALIZED (
    SELECT count(*)::float8 AS rows, greatest(avg(m._length), 1)::float8 AS average
    FROM {table} AS m WHERE {partition}
),
found AS MATERIALIZED (
    SELECT m.{id} AS id, w.term, m._length AS size,
        1 / greatest(1.644934 - 16.44934 * max(ts_rank(m.{words}, w.lexeme::tsquery)), 0.02) - 0.5 AS tf,
        {visible} AS seen
    FROM wanted AS w JOIN {table} AS m ON {partition} AND m.{words} @@ w.lexeme::tsquery
    WHERE {filters}
    GROUP BY 1, 2, 3, 5
),
direct AS MATERIALIZED (
    SELECT id, term, (%(k1)s + 1) * tf / (tf + %(k1)s * (1 - %(b)s + %(b)s * CASE
        WHEN %(pivot)s::float8 IS NULL THEN size / average
        ELSE greatest(size, %(pivot)s::float8) / %(pivot)s::float8 END)) AS weight, seen
    FROM found, mine
),
missing AS MATERIALIZED (
    SELECT * FROM unnest(%(similar_term)s::int[], %(similar)s::text[]) AS s (term, word)
    WHERE NOT EXISTS (SELECT FROM direct AS d WHERE d.term = s.term) LIMIT 8
),
alike AS MATERIALIZED (
    SELECT m.{id} AS id, s.term, 0.3 * word_similarity(s.word, {text}) AS weight, {visible} AS seen
    FROM missing AS s JOIN {table} AS m ON {partition} AND {short} AND ({text}) %%> s.word
    WHERE {filters}
),
hit AS MATERIALIZED (
    SELECT * FROM direct UNION ALL SELECT * FROM alike
),
rare AS MATERIALIZED (
    SELECT term, ln((rows - count(*) + 0.5) / (count(*) + 0.5) + 1) AS idf
    FROM hit, mine GROUP BY term, rows
),
near AS MATERIALIZED (
    SELECT m.{id} AS id, {session} AS session, nullif({author}, '') AS author, m._length AS size,
        m._flags & %(asks)s <> 0 AS asks, row_number() OVER (ORDER BY {session}, m._time, m.{id}) AS place
    FROM {table} AS m
    WHERE {partition} AND {visible} AND %(far)s + %(answer)s > 0
        AND {session} IN (SELECT {session_of_h} FROM {table} AS h JOIN hit ON hit.id = h.{id} WHERE {partition_of_h})
),
lent AS MATERIALIZED (
    SELECT id, term, weight * idf AS part FROM hit JOIN rare USING (term) WHERE seen
    UNION ALL
    SELECT r.id, hit.term, hit.weight * idf * least(1, %(gate)s / greatest(r.size, 1)) * CASE step
        WHEN 1 THEN CASE WHEN l.asks AND (l.author = r.author) IS NOT TRUE THEN %(answer)s ELSE %(near)s END
        WHEN -1 THEN %(near)s ELSE %(far)s END
    FROM hit JOIN rare USING (term) JOIN near AS l ON l.id = hit.id CROSS JOIN (VALUES (-2), (-1), (1), (2)) AS s (step)
    JOIN near AS r ON r.place = l.place + step AND (r.session = l.session) IS TRUE
),
said AS MATERIALIZED (
    SELECT id, sum(part) AS text FROM (SELECT id, term, max(part) AS part FROM lent GROUP BY 1, 2) AS best GROUP BY 1
),
dated AS MATERIALIZED (
    SELECT m.{id} AS id, max(d.fit) AS fit
    FROM unnest(%(since)s::bigint[], %(until)s::bigint[], %(fit)s::float8[]) AS d (since, until, fit)
    JOIN {table} AS m ON {partition} AND m._time >= d.since AND m._time < d.until
    GROUP BY 1
),
named AS MATERIALIZED (
    SELECT CASE WHEN count(*) FILTER (WHERE called) = 1 AND count(*) > 1
        THEN min(author) FILTER (WHERE called) END AS author
    FROM (
        SELECT author, lower(omoide_bare(author)) = ANY (%(names)s::text[])
            OR lower(omoide_bare(split_part(author, ' ', 1))) = ANY (%(names)s::text[]) AS called
        FROM (SELECT DISTINCT {author} AS author FROM {table} AS m
              WHERE {partition} AND {author} <> '' AND cardinality(%(names)s::text[]) > 0) AS everyone
    ) AS authors
),
scored AS (
    SELECT m.{id} AS id, coalesce(said.text, 0) AS text, m._time AS time,
        (coalesce(said.text, 0) * CASE WHEN {author} = named.author THEN %(author)s ELSE 1 END
            + %(date)s * coalesce((SELECT max(best.text) FROM said AS best), 0) * coalesce(dated.fit, 0))
        * CASE WHEN m._flags & %(cues)s <> 0 THEN %(cue)s ELSE 1 END
        * CASE WHEN m._flags & %(asking_flag)s <> 0 THEN %(asking)s ELSE 1 END
        * (1 - %(importance)s + %(importance)s * least(greatest({importance}, 0), 1))
        * (1 - %(confidence)s + %(confidence)s * {confidence}) AS score
    FROM said FULL JOIN dated ON dated.id = said.id CROSS JOIN named
    JOIN {table} AS m ON {partition} AND m.{id} = coalesce(said.id, dated.id)
    WHERE {filters} AND {visible}
)
SELECT id, score, text FROM scored WHERE score > 0 ORDER BY score DESC, time DESC, id LIMIT %(limit)s
